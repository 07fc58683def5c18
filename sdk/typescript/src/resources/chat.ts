// client.chat: completions, whole and as streams, and the sessions that remember them.

import { type Answer, chunks, completion, WHOLE_ANSWER } from "../answers.js";
import { CHAT_ANSWER, ROWS, SESSION } from "../forms.js";
import type { PostOptions, RequestOptions } from "../calls.js";
import type {
  ChatCompletion,
  ChatCompletionChunk,
  ChatCompletionParams,
  ChatSession,
  CreateSession,
  ListSessions,
  SessionMessage,
  SessionMessageParam,
  SessionReference,
} from "../models/chat.js";
import { idOf } from "../names.js";
import { Page } from "../pages.js";
import { Stream } from "../streaming.js";
import type { Transport } from "../transport.js";
import { step } from "../utils.js";

const SESSIONS = 20;
const MESSAGES = 1_000;

type Whole = ChatCompletionParams & { stream?: false | undefined };
type Streamed = ChatCompletionParams & { stream: true };

export class ChatResource {
  readonly completions: ChatCompletionsResource;
  readonly sessions: ChatSessionsResource;

  constructor(transport: Transport) {
    this.completions = new ChatCompletionsResource(transport);
    this.sessions = new ChatSessionsResource(transport);
  }
}

export class ChatCompletionsResource {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  create(params: Whole, options?: PostOptions): Promise<ChatCompletion>;
  create(params: Streamed, options?: PostOptions): Promise<Stream<ChatCompletionChunk>>;
  create(
    params: ChatCompletionParams,
    options?: PostOptions,
  ): Promise<ChatCompletion | Stream<ChatCompletionChunk>>;
  async create(
    params: ChatCompletionParams,
    options?: PostOptions,
  ): Promise<ChatCompletion | Stream<ChatCompletionChunk>> {
    // Sent always, since the server streams by default.
    const stream = params.stream ?? false;
    const { collectionId: given, sessionId, ...more } = params;
    const collectionId = given == null ? undefined : await idOf(this.#transport, "collection", given, options);
    const json = { ...more, collectionId, sessionId: sessionId ?? undefined, stream };
    const call = { method: "POST", path: "/chat", json } as const;
    if (!stream) {
      const whole = { ...call, answer: CHAT_ANSWER, defaultTimeout: WHOLE_ANSWER };
      return completion(await this.#transport.request<Answer>(whole, options));
    }
    const { response, deadline, key } = await this.#transport.open(call, options);
    return new Stream(chunks(response, deadline, key), deadline.controller, () => deadline.stop());
  }
}

export class ChatSessionsResource {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** A session of 1 to 100 messages of your own, without a search. */
  async create(params: CreateSession, options?: RequestOptions): Promise<SessionReference> {
    const { messages, collectionId: given } = params;
    const collectionId = given == null ? undefined : await idOf(this.#transport, "collection", given, options);
    const json = { messages, collectionId };
    return this.#transport.request({ method: "POST", path: "/chat/sessions", json, answer: SESSION }, options);
  }

  /** Adds 1 to 100 messages of your own, in order. */
  async addMessages(
    sessionId: string,
    messages: readonly SessionMessageParam[],
    options?: RequestOptions,
  ): Promise<void> {
    const path = `/chat/sessions/${step(sessionId)}/messages`;
    await this.#transport.request({ method: "POST", path, json: { messages }, answer: SESSION }, options);
  }

  /** The caller's sessions, the latest first. */
  list(params: ListSessions = {}, options?: RequestOptions): Promise<Page<ChatSession>> {
    return this.#rows("/chat/sessions", { limit: SESSIONS, ...given(params) }, options);
  }

  /** Messages, in order. */
  async messages(
    sessionId: string,
    params: ListSessions = {},
    options?: RequestOptions,
  ): Promise<Page<SessionMessage>> {
    const path = `/chat/sessions/${step(sessionId)}/messages`;
    return this.#rows(path, { limit: MESSAGES, ...given(params) }, options);
  }

  async delete(sessionId: string, options?: RequestOptions): Promise<void> {
    return this.#transport.request({ method: "DELETE", path: `/chat/sessions/${step(sessionId)}` }, options);
  }

  #rows<T>(path: string, params: Bounds, options: RequestOptions | undefined): Promise<Page<T>> {
    const { limit, offset = 0 } = params;
    const ask = (from: number): Promise<readonly T[]> =>
      this.#transport.request({ method: "GET", path, query: { limit, offset: from }, answer: ROWS }, options);
    return Page.ofRows(ask, offset, limit);
  }
}

interface Bounds {
  readonly limit: number;
  readonly offset?: number;
}

function given({ limit, offset }: ListSessions): Partial<Bounds> {
  return { ...(limit !== undefined && { limit }), ...(offset !== undefined && { offset }) };
}
