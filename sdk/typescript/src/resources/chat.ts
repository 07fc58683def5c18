// client.chat: completions, whole and as streams, and the sessions that remember them.

import { type Answer, chunks, completion } from "../answers.js";
import type { PostOptions, RequestOptions } from "../calls.js";
import type {
  ChatCompletion,
  ChatCompletionChunk,
  ChatCompletionParams,
  ChatSession,
  ListSessions,
  SessionMessage,
} from "../models/chat.js";
import { Stream } from "../streaming.js";
import type { Transport } from "../transport.js";
import { step } from "../utils.js";

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
    // Said always: the server streams where nothing is said.
    const stream = params.stream ?? false;
    const call = { method: "POST", path: "/chat", json: { ...params, stream } } as const;
    if (!stream) return completion(await this.#transport.request<Answer>(call, options));
    const { response, deadline } = await this.#transport.open(call, options);
    return new Stream(chunks(response, deadline), deadline.controller);
  }
}

export class ChatSessionsResource {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** The caller's own, the latest first. */
  list(params: ListSessions = {}, options?: RequestOptions): Promise<ChatSession[]> {
    return this.#transport.request({ method: "GET", path: "/chat/sessions", query: params }, options);
  }

  async messages(
    sessionId: string,
    params: ListSessions = {},
    options?: RequestOptions,
  ): Promise<SessionMessage[]> {
    const path = `/chat/sessions/${step(sessionId)}/messages`;
    return this.#transport.request({ method: "GET", path, query: params }, options);
  }

  async delete(sessionId: string, options?: RequestOptions): Promise<void> {
    return this.#transport.request({ method: "DELETE", path: `/chat/sessions/${step(sessionId)}` }, options);
  }
}
