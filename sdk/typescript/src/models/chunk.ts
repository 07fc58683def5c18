// Chunks: the results of a retrieval, and the graph around them.

import type { Metadata } from "./collection.js";

export type RetrievalMode = "semantic" | "keyword" | "hybrid" | "hierarchical" | "graph";

export interface RetrieveParams {
  query: string;
  /** An id or a name; null means none. */
  collectionId?: string | null | undefined;
  mode?: RetrievalMode | undefined;
  /** 1 to 100; 10. */
  topK?: number | undefined;
  documentType?: string | undefined;
  rerank?: boolean | undefined;
  enableGraph?: boolean | undefined;
  /** Values, or operators: { year: { $gte: 2020 } }. */
  metadataFilter?: Metadata | undefined;
}

export interface Chunk {
  readonly chunkId: string;
  readonly documentId: string;
  readonly collectionId: string;
  /** The user who created the document. */
  readonly userId: string;
  /** The one user who owns the document; null for the whole org. */
  readonly ownerId: string | null;
  readonly content: string;
  readonly contentHash: string;
  readonly chunkIndex: number;
  /** 0 to 1, never higher than the one before it. */
  readonly score: number;
  /** The cosine to the query; null if none was computed. */
  readonly similarity: number | null;
  readonly rank: number;
  /** `graphSourced`: only the graph found the chunk. */
  readonly metadata: { readonly graphSourced: boolean };
  readonly document: { readonly id: string; readonly title: string; readonly filename: string | null };
  readonly documentMetadata: Metadata;
  /** Such as page_number and section, in the server's spelling. */
  readonly chunkMetadata: Record<string, unknown>;
}

export interface GraphEntity {
  readonly id: string;
  readonly name: string;
  readonly type: string;
  readonly aliases: readonly string[];
  /** The question names it. */
  readonly seed: boolean;
  readonly weight: number;
}

/** `source` and `target` are ids of entities, `evidence` ids of the chunks that state the edge. */
export interface GraphEdge {
  readonly type: string;
  readonly source: string;
  readonly target: string;
  readonly confidence: number;
  readonly evidence: readonly string[];
}

export interface Graph {
  readonly entities: readonly GraphEntity[];
  readonly edges: readonly GraphEdge[];
  readonly evidence: readonly string[];
}

export interface RetrievalMetadata {
  readonly mode: RetrievalMode;
  readonly totalResults: number;
  readonly retrievalTimeMs: number;
  readonly rerankedBy: string | null;
  readonly rerankFailed: boolean;
  readonly exact: boolean | null;
  readonly considered: number;
}

/** Results beside the chunks. */
export interface RetrievalDetails {
  readonly query: string;
  readonly mode: RetrievalMode;
  readonly totalResults: number;
  readonly graphEnhanced: boolean;
  /** The graph in sentences. */
  readonly graphContext: string | null;
  readonly graph: Graph | null;
  readonly retrievalMetadata: RetrievalMetadata;
}

/** An array of chunks, best first, with further results. */
export type RetrievalResults = Chunk[] & RetrievalDetails;

/** The graph around the names in a question; empty if it has none of them. */
export interface GraphQueryResult extends Graph {
  readonly query: string;
  readonly context: string | null;
  readonly chunks: readonly Chunk[];
  readonly retrievalMetadata: RetrievalMetadata;
}
