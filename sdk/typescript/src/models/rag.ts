// Rag contract: a search and an answer for a user's token.

import type { Confidence } from "./chat.js";
import type { Metadata } from "./collection.js";

export interface RagParams {
  queryText: string;
  /** 1 to 50; 8. */
  topK?: number | undefined;
  /** `orgId`: an id or a name. Dates are ISO 8601, inclusive. */
  filters?: RagFilters | undefined;
}

export interface RagFilters {
  sourceType?: "transcript" | "email" | "doc" | "faq" | "web" | undefined;
  lang?: string | undefined;
  orgId?: string | undefined;
  dateFrom?: string | undefined;
  dateTo?: string | undefined;
}

export interface RagSource {
  readonly sourceId: string;
  readonly sourceType: string;
  readonly sourceTitle: string;
  readonly sourceUri: string | null;
  readonly collectionName: string | null;
  readonly snippet: string;
  readonly meta: Metadata;
  readonly pageNumber: number | null;
  readonly pageEnd: number | null;
  readonly section: string | null;
}

/** A chunk; `score` is the cosine to the question. */
export interface RagResult extends RagSource {
  readonly chunkId: string;
  readonly score: number;
  readonly rank: number;
}

export interface RagSearchResponse {
  readonly status: "success";
  readonly queryText: string;
  readonly results: readonly RagResult[];
  readonly totalFound: number;
  readonly processingTimeMs: number;
  readonly ignoredFilters?: readonly string[];
}

export interface RagAnswerText {
  readonly text: string;
  readonly confidence: "high" | "medium" | "low";
  readonly model: string | null;
  readonly generatedAt: string;
}

export interface RagCitation extends RagSource {
  readonly relevanceScore: number;
}

/** `thresholds` are those of `avgRelevance`. */
export interface RagContext {
  readonly chunksRetrieved: number;
  readonly uniqueSources: number;
  readonly avgRelevance: number;
  readonly thresholds: { readonly high: number; readonly medium: number };
}

export interface RagAnswerResponse {
  /** insufficient_context for an answer that was withheld. */
  readonly status: "success" | "insufficient_context";
  readonly queryText: string;
  readonly answer: RagAnswerText;
  readonly citations: readonly RagCitation[];
  readonly contextUsed: RagContext;
  readonly confidenceDetail: Confidence;
  readonly processingTimeMs: number;
  readonly ignoredFilters?: readonly string[];
}
