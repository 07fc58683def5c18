// Search contract: explained search, contents, similar texts, and answers whose sentences are checked.

import type { Confidence } from "./chat.js";
import type { Metadata } from "./collection.js";

export type SearchMode = "auto" | "knowledge" | "graph" | "hybrid" | "keyword" | "neural" | "fast";

/** A match has one value of each list. Times are ISO 8601, inclusive. */
export interface SearchFilters {
  sources?: string[] | undefined;
  types?: string[] | undefined;
  authors?: string[] | undefined;
  states?: string[] | undefined;
  labels?: string[] | undefined;
  after?: string | undefined;
  before?: string | undefined;
  metadata?: Metadata | undefined;
}

export interface SearchInclude {
  document?: boolean | undefined;
  rationale?: boolean | undefined;
  highlights?: boolean | undefined;
}

/** Ids or names. The scope org needs an org, any other a collection. */
export interface ScopeParams {
  collectionId?: string | undefined;
  orgId?: string | undefined;
  scope?: "auto" | "workspace" | "org" | undefined;
}

export interface RetrievalOptions extends ScopeParams {
  autoprompt?: boolean | undefined;
  /** 1 to 50; 10. */
  topK?: number | undefined;
  quality?: { rerank?: boolean | undefined } | undefined;
}

export interface SearchParams extends RetrievalOptions {
  q: string;
  mode?: SearchMode | undefined;
  context?: boolean | undefined;
  moderation?: boolean | undefined;
  filters?: SearchFilters | undefined;
  include?: SearchInclude | undefined;
}

export interface SimilarParams extends RetrievalOptions {
  subject:
    | { kind: "text"; text: string }
    | { kind: "document"; documentId: string }
    | { kind: "chunk"; chunkId: string };
  mode?: "auto" | "neural" | "keyword" | "hybrid" | "fast" | undefined;
  by?: "chunks" | "documents" | undefined;
  filters?: SearchFilters | undefined;
}

export interface ContentsParams extends ScopeParams {
  ids: { kind: "document" | "chunk"; id: string }[];
  expand?: { chunks?: boolean; graph?: GraphExpansion } | undefined;
  includeRaw?: boolean | undefined;
}

export interface GraphExpansion {
  hops?: 0 | 1 | 2 | undefined;
  include?: ("relationships" | "entities" | "evidence")[] | undefined;
}

export interface AnswerParams extends RetrievalOptions {
  question: string;
  stream?: boolean | undefined;
  mode?: SearchMode | undefined;
  context?: boolean | undefined;
  moderation?: boolean | undefined;
  answerType?: "abstractive" | "extractive" | undefined;
  citations?: boolean | undefined;
  /** 16 to 4,096; 400. */
  maxTokens?: number | undefined;
  model?: string | undefined;
  constraints?: SearchFilters | undefined;
  include?: SearchInclude | undefined;
}

/** [start, end) in characters (code points). */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** A chunk with fields of its document; `highlightSpan` is in the document's text. */
export interface SearchResult {
  readonly documentId: string;
  readonly chunkId: string;
  readonly workspaceId: string;
  readonly score: number;
  readonly similarity: number | null;
  readonly title: string | null;
  readonly type: string | null;
  readonly source: string | null;
  readonly occurredAt: string | null;
  readonly author: string | null;
  readonly sectionLabel: string | null;
  readonly pageNumber: number | null;
  readonly pageEnd: number | null;
  readonly highlight: string | null;
  readonly highlightSpan: Span | null;
  readonly url: string | null;
}

/** `seed`: the question names it. */
export interface SearchEntity {
  readonly id: string;
  readonly name: string;
  readonly type: string;
  readonly aliases: readonly string[];
  readonly seed: boolean;
}

/** `from` and `to` are ids of entities. */
export interface SearchEdge {
  readonly type: string;
  readonly from: string;
  readonly to: string;
  readonly confidence: number;
}

export interface SearchGraph {
  readonly entities: readonly SearchEntity[];
  readonly edges: readonly SearchEdge[];
  readonly evidenceChunks: readonly string[];
}

/** `query` was embedded, `words` were the keywords, both after `rules`. */
export interface Rationale {
  readonly routerMode: string;
  readonly query: string;
  readonly words: string;
  readonly rules: readonly { readonly rule: string; readonly because: string }[];
  readonly graph: SearchGraph;
}

/** `stages` are milliseconds. */
export interface SimilarUsage {
  readonly latencyMs: number;
  readonly routerScope: "workspace" | "org";
  readonly stages: Readonly<Record<string, number>>;
  readonly embeddingVersion: string | null;
}

export interface SearchUsage extends SimilarUsage {
  readonly inferredFamily: string | null;
  readonly inferredTimeRange: { readonly after: string | null; readonly before: string | null };
  readonly contributionShares: Readonly<Record<string, number>>;
}

export interface SearchResponse {
  readonly results: readonly SearchResult[];
  readonly rationale: Rationale | null;
  /** All results as one text, if requested. */
  readonly context: string | null;
  readonly usage: SearchUsage;
  readonly ignoredFilters?: readonly string[];
  readonly requestId: string;
}

export interface SimilarResponse {
  readonly matches: readonly SearchResult[];
  readonly usage: SimilarUsage;
  readonly ignoredFilters?: readonly string[];
  readonly requestId: string;
}

/** `text` is null beyond the size limit of a response. */
export interface DocumentChunk {
  readonly id: string;
  readonly text: string | null;
  readonly span: Span;
}

export interface ContentsChunk extends DocumentChunk {
  readonly documentId: string;
}

/** The graph around a document, with ids of entities and chunks. */
export interface ContentsGraph {
  readonly entities: readonly string[];
  readonly relationships: readonly SearchEdge[];
  readonly evidence: readonly string[];
}

/** `body`, `chunks` and `graph` are null if not requested; `truncated`: the size limit left some out. */
export interface ContentsDocument {
  readonly id: string;
  readonly workspaceId: string;
  readonly title: string;
  readonly type: string;
  readonly source: string | null;
  readonly url: string | null;
  readonly author: string | null;
  readonly state: string | null;
  readonly occurredAt: string | null;
  readonly metadata: Metadata;
  /** What of the file is not in the text. */
  readonly notes: readonly string[];
  readonly body: string | null;
  readonly chunks: readonly DocumentChunk[] | null;
  readonly graph: ContentsGraph | null;
  readonly truncated: boolean;
}

/** `missing`: ids without a document or chunk. */
export interface ContentsResponse {
  readonly documents: readonly ContentsDocument[];
  readonly chunks: readonly ContentsChunk[];
  readonly missing: readonly string[];
  readonly requestId: string;
}

/** `index`: its number in the answer. */
export interface Citation {
  readonly index: number;
  readonly documentId: string;
  readonly chunkId: string;
  readonly title: string;
  readonly url: string | null;
  readonly sectionLabel: string | null;
  readonly pageNumber: number | null;
  readonly pageEnd: number | null;
}

export interface SentenceReference {
  readonly documentId: string;
  readonly chunkId: string;
  readonly span: Span;
}

/** `span` is in the answer. */
export interface Sentence {
  readonly text: string;
  readonly span: Span;
  readonly references: readonly SentenceReference[];
}

/** The check of each sentence: unsupported ones are dropped; `reasons` counts them. */
export interface Support {
  readonly kept: number;
  readonly dropped: number;
  readonly reasons: Readonly<Record<string, number>>;
  readonly sentences: readonly Sentence[];
}

export interface AnswerRetrieval {
  readonly results: readonly SearchResult[];
  readonly latencyMs: number;
}

/** `model` is "extractive" for an answer of the documents' own sentences. */
export interface AnswerGeneration {
  readonly model: string;
  readonly answerType: "abstractive" | "extractive";
  readonly latencyMs: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
}

/** The first event of a stream. */
export interface AnswerMeta {
  readonly retrieval: AnswerRetrieval;
  readonly confidence: "high" | "medium" | "low";
  readonly confidenceDetail: Confidence;
  readonly rationale: Rationale | null;
  readonly ignoredFilters?: readonly string[];
  readonly requestId: string;
}

export interface AnswerResponse extends AnswerMeta {
  readonly answer: string;
  /** Confidence was low, or no sentence was supported. */
  readonly withheld: boolean;
  readonly citations: readonly Citation[];
  readonly support: Support;
  readonly generation: AnswerGeneration;
  readonly usage: SearchUsage;
}

/** A part of a stream. */
export type AnswerEvent =
  | { readonly type: "meta"; readonly meta: AnswerMeta }
  | { readonly type: "token"; readonly text: string }
  | { readonly type: "citation"; readonly citation: Citation }
  | { readonly type: "final"; readonly answer: AnswerResponse };
