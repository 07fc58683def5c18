// Conversations: requests, and responses whole or in chunks.

import type { RetrievalMode } from "./chunk.js";
import type { Metadata } from "./collection.js";

export interface ChatMessage {
  role: "system" | "developer" | "user" | "assistant";
  content: string | { type: "text"; text: string }[];
}

export type Preset = "concise" | "detailed" | "research" | "technical" | "creative" | "qna";

export interface ChatCompletionParams {
  /** The last message is the user's. */
  messages: ChatMessage[];
  /** An id or a name; null means none. */
  collectionId?: string | null | undefined;
  /** The session to continue; a new one is created without an id or with null. */
  sessionId?: string | null | undefined;
  stream?: boolean | undefined;
  model?: string | undefined;
  preset?: Preset | undefined;
  reasoningMode?: "standard" | "deep" | undefined;
  temperature?: number | undefined;
  maxTokens?: number | undefined;
  customInstruction?: string | undefined;
  isFollowUp?: boolean | undefined;
  retrieval?: ChatRetrieval | undefined;
  generation?: ChatGeneration | undefined;
}

export interface ChatRetrieval {
  mode?: RetrievalMode | undefined;
  /** 1 to 50; 5. */
  topK?: number | undefined;
  rerank?: boolean | undefined;
  enableGraph?: boolean | undefined;
  hierarchical?: boolean | undefined;
  expandContext?: boolean | undefined;
  /** Values, or operators: { year: { $gte: 2020 } }. */
  metadataFilter?: Metadata | undefined;
  /** Such as legal, academic, qa, table, general. */
  documentType?: string | undefined;
}

/** Fields beside the messages override these. */
export interface ChatGeneration {
  model?: string | undefined;
  temperature?: number | undefined;
  maxTokens?: number | undefined;
  topP?: number | undefined;
  frequencyPenalty?: number | undefined;
  presencePenalty?: number | undefined;
}

export interface Source {
  readonly documentId: string;
  readonly title: string;
  readonly filename: string | null;
  /** Absent in a stored message. */
  readonly collectionId?: string;
  readonly collectionName?: string | null;
  readonly chunkIndex: number;
  readonly score: number;
  readonly chunkId: string;
  readonly pageNumber: number | null;
  readonly pageEnd: number | null;
  readonly section: string | null;
}

export interface Usage {
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly totalTokens: number;
  /** The passages' part of the prompt. */
  readonly retrievalTokens: number;
}

/** The score from 0 to 1, which the thresholds divide into levels, and the reasons. */
export interface Confidence {
  readonly level: "high" | "medium" | "low";
  readonly score: number;
  readonly thresholds: { readonly high: number; readonly medium: number };
  readonly because: readonly string[];
}

/** How an answer was produced. */
export interface ChatMetadata {
  readonly requestId: string;
  /** The nil UUID without a session. */
  readonly sessionId: string;
  readonly userId: string;
  readonly collectionId: string | null;
  readonly retrievalMode: RetrievalMode;
  readonly model: string;
  readonly latencyMs: number;
  readonly retrievalLatencyMs: number;
  readonly generationLatencyMs: number;
  readonly timestamp: string;
  readonly preset: Preset;
  readonly reasoningMode: "standard" | "deep";
  readonly isFollowUp: boolean;
  /** The text that was searched. */
  readonly searchQuery: string;
  readonly subQueries: readonly string[];
  /** From 0 to 1. */
  readonly confidence: number;
  readonly confidenceDetail: Confidence;
  /** Confidence was too low, and the answer says so. */
  readonly withheld: boolean;
  /** No model is configured: the answer consists of the documents' own sentences. */
  readonly extractive: boolean;
  readonly kept: boolean;
  /** The answer has a record, which `records.rate` finds by `requestId`. */
  readonly recorded: boolean;
}

export interface ChatCompletion {
  readonly object: "chat.completion";
  readonly model: string;
  readonly choices: readonly [
    {
      readonly index: 0;
      readonly message: { readonly role: "assistant"; readonly content: string };
      readonly finishReason: "stop";
    },
  ];
  readonly query: string;
  readonly sources: readonly Source[];
  readonly usage: Usage;
  readonly metadata: ChatMetadata;
  readonly sessionId: string;
  /** From 0 to 1. */
  readonly confidence: number;
  readonly confidenceDetail: Confidence;
  readonly isFollowUp: boolean;
  readonly subQueries: readonly string[];
}

/** There is always one choice; further fields depend on the type. */
export interface ChatCompletionChunk {
  readonly object: "chat.completion.chunk";
  readonly type: "reasoning_step" | "sub_query" | "sources" | "delta" | "usage" | "done";
  readonly choices: readonly [
    {
      readonly index: 0;
      readonly delta: { readonly content?: string };
      /** "stop" with the last chunk. */
      readonly finishReason: "stop" | null;
    },
  ];
  readonly reasoningStep?: { readonly step: number; readonly description: string };
  readonly subQuery?: string;
  /** Of `sources`; of `done` after deep reasoning, the sources of all parts. */
  readonly sources?: readonly Source[];
  readonly usage?: Usage;
  /** Of done, as the five after it. */
  readonly metadata?: ChatMetadata;
  readonly sessionId?: string;
  readonly confidence?: number;
  readonly confidenceDetail?: Confidence;
  readonly isFollowUp?: boolean;
  readonly subQueries?: readonly string[];
}

export interface ChatSession {
  readonly id: string;
  readonly orgId: string;
  readonly userId: string;
  readonly collectionId: string | null;
  readonly title: string;
  readonly createdAt: string;
  readonly lastMessageAt: string;
  readonly messageCount: number;
}

/** A message; an answer also has its sources and usage. */
export interface SessionMessage {
  readonly id: string;
  readonly sessionId: string;
  readonly role: "user" | "assistant" | "system";
  readonly content: string;
  readonly createdAt: string;
  readonly sources?: readonly Partial<Source>[];
  readonly usage?: Partial<Usage>;
}

export interface SessionMessageParam {
  readonly role: "user" | "assistant";
  readonly content: string;
}

export interface CreateSession {
  readonly messages: readonly SessionMessageParam[];
  /** An id or a name; without it the session is about all of the caller's documents. */
  readonly collectionId?: string | null | undefined;
}

export interface SessionReference {
  readonly sessionId: string;
}

export interface ListSessions {
  /** Of sessions 1 to 100, and 20; of messages 1 to 1,000, and 1,000. */
  limit?: number | undefined;
  offset?: number | undefined;
}
