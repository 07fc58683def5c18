// Documents: uploads and their processing.

import type { RequestOptions } from "../calls.js";
import type { FileInput } from "../files.js";
import type { ListParams } from "../pages.js";
import type { RealtimeClient } from "../realtime.js";
import type { Metadata } from "./collection.js";

export type DocumentStatus = "processing" | "completed" | "failed";

export interface Document {
  readonly id: string;
  readonly orgId: string;
  readonly collectionId: string;
  /** The user who created it. */
  readonly userId: string;
  /** The one user who owns the document; null for the whole org. */
  readonly ownerId: string | null;
  readonly title: string;
  readonly filename: string | null;
  readonly contentType: string | null;
  readonly sizeBytes: number | null;
  readonly status: DocumentStatus;
  /** The reason of the failure, or of the last failed attempt while it is processed. */
  readonly error: { readonly code: string; readonly message: string } | null;
  readonly chunkCount: number;
  readonly contentHash: string;
  readonly uniqueIdentifierHash: string;
  readonly metadata: Metadata;
  /** In the server's spelling. */
  readonly processingInfo: Record<string, unknown>;
  /** What of the file is not in the document's text. */
  readonly notes: readonly string[];
  readonly createdAt: string;
  readonly updatedAt: string;
}

/** Progress of a document: `step` is fetching, converting, embedding or storing while the worker processes it. */
export interface DocumentProgress {
  readonly documentId: string;
  readonly status: DocumentStatus;
  readonly step: string | null;
  readonly attempts: number;
  readonly error: { readonly code: string; readonly message: string } | null;
  readonly errorMessage: string | null;
  readonly chunkCount: number;
  /** The sum over its chunks. */
  readonly totalTokens: number;
  /** In the server's spelling. */
  readonly processingInfo: Record<string, unknown>;
  /** What of the file is not in the document's text. */
  readonly notes: readonly string[];
  readonly createdAt: string;
  readonly updatedAt: string;
  /** Null while it is processed. */
  readonly processedAt: string | null;
}

/** A link to the original, valid without a key until `expiresAt`. */
export interface DocumentLink {
  readonly url: string;
  /** In seconds. */
  readonly expiresIn: number;
  readonly expiresAt: string;
  readonly filename: string | null;
}

interface Brought {
  collectionId: string;
  metadata?: Metadata | undefined;
  /** Visible to its owner and the org's admins only. */
  private?: boolean | undefined;
}

interface Named {
  /** The caller's own name for the document: an upload of the same name replaces it, so the call may be repeated. */
  externalId?: string | undefined;
}

export interface NewDocument extends Brought, Named {
  file: FileInput;
  /** By default the file's own name. */
  filename?: string | undefined;
  /** By default the file's own type, or that of its name. */
  contentType?: string | undefined;
}

export interface NewDocumentFromUrl extends Brought {
  url: string;
  title?: string | undefined;
}

export interface NewDocumentFromText extends Brought, Named {
  content: string;
  title?: string | undefined;
}

/** Omitted and null fields stay unchanged. */
export interface DocumentChanges {
  title?: string | null | undefined;
  metadata?: Metadata | null | undefined;
}

export interface ListDocuments extends ListParams {
  collectionId: string;
  status?: DocumentStatus | undefined;
  sortBy?: "created_at" | "title" | "size_bytes" | undefined;
}

export interface WaitOptions extends Pick<RequestOptions, "signal"> {
  /** Milliseconds for the whole wait; 300,000. */
  timeout?: number | undefined;
  /** A client of supabase-js with the user's token: its Realtime reports the end of the processing. */
  realtime?: RealtimeClient | undefined;
}
