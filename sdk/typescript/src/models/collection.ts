// Collections: named sets of documents.

import type { ListParams } from "../pages.js";

/** A user's own: keys and values are passed on as they are. */
export type Metadata = Record<string, unknown>;

export interface CollectionConfig {
  chunkSize?: number | undefined;
  chunkOverlap?: number | undefined;
  embeddingModel?: string | undefined;
  enableHybridSearch?: boolean | undefined;
  enableKnowledgeGraph?: boolean | undefined;
}

export interface Collection {
  readonly id: string;
  readonly orgId: string;
  /** The user who created it. */
  readonly userId: string;
  /** The one user who owns the collection; null for the whole org. */
  readonly ownerId: string | null;
  readonly name: string;
  readonly description: string | null;
  readonly metadata: Metadata;
  readonly config: CollectionConfig;
  readonly documentCount: number;
  /** ISO 8601, as all times here. */
  readonly createdAt: string;
  readonly updatedAt: string;
}

/** How many documents the worker will read. */
export interface GraphQueued {
  readonly collectionId: string;
  readonly queued: number;
}

/** Omitted and null fields stay unchanged. */
export interface CollectionChanges {
  name?: string | null | undefined;
  description?: string | null | undefined;
  metadata?: Metadata | null | undefined;
  config?: CollectionConfig | null | undefined;
}

export interface NewCollection extends CollectionChanges {
  name: string;
  /** Members of one org may omit it. */
  orgId?: string | undefined;
  private?: boolean | undefined;
}

export interface ListCollections extends ListParams {
  sortBy?: "created_at" | "name" | "document_count" | undefined;
}
