// client.chat: completions, whole and as streams, and the sessions that remember them.

import { APIConnectionError, errorOf, isRecord, MnemosyneError, StreamInterruptedError } from "../errors.js";
import type { Deadline } from "../deadline.js";
import type {
  ChatCompletion,
  ChatCompletionChunk,
  ChatCompletionParams,
  ChatMetadata,
  ChatSession,
  ListSessions,
  SessionMessage,
  Source,
  Usage,
} from "../models/chat.js";
import { events, Stream } from "../streaming.js";
import { type PostOptions, requestId, type RequestOptions, type Transport } from "../transport.js";
import { received, step } from "../utils.js";

// After the last chunk there is only the end of the answer to wait for.
const PATIENCE_AT_THE_END = 1_000;

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

  async messages(sessionId: string, params: ListSessions = {}, options?: RequestOptions): Promise<SessionMessage[]> {
    const path = `/chat/sessions/${step(sessionId)}/messages`;
    return this.#transport.request({ method: "GET", path, query: params }, options);
  }

  async delete(sessionId: string, options?: RequestOptions): Promise<void> {
    return this.#transport.request({ method: "DELETE", path: `/chat/sessions/${step(sessionId)}` }, options);
  }
}

interface Answer {
  readonly query: string;
  readonly response: string;
  readonly sources: readonly Source[];
  readonly usage: Usage;
  readonly metadata: unknown;
}

function completion(answer: Answer): ChatCompletion {
  const { response, metadata: said, ...more } = answer;
  const { metadata, ...highlights } = ending(said);
  const message = { role: "assistant", content: response } as const;
  return {
    object: "chat.completion",
    model: metadata.model,
    choices: [{ index: 0, message, finishReason: "stop" }],
    ...more,
    metadata,
    ...highlights,
  };
}

/** Of a turn, `metadata` are the server's; what is asked for most stands beside them. */
function ending(said: unknown): Required<
  Pick<ChatCompletionChunk, "metadata" | "sessionId" | "confidence" | "isFollowUp" | "subQueries">
> {
  const metadata = received(said) as ChatMetadata;
  const { sessionId, confidence, isFollowUp, subQueries } = metadata;
  return { metadata, sessionId, confidence, isFollowUp, subQueries };
}

/** Throws the error that the server tells of, and StreamInterruptedError where there is no last chunk. */
async function* chunks(response: Response, deadline: Deadline): AsyncGenerator<ChatCompletionChunk> {
  const request = requestId(response);
  let isDone = false;
  try {
    if (response.body === null) throw new StreamInterruptedError("The stream is empty.", { requestId: request });
    for await (const data of events(response.body, deadline)) {
      const said = parsed(data, request);
      if (said["type"] === "error") throw errorOf(said, { requestId: request });
      const chunk = chunkOf(said);
      if (chunk === undefined) continue;
      isDone ||= chunk.type === "done";
      if (isDone) deadline.patience = PATIENCE_AT_THE_END;
      yield chunk;
    }
    if (!isDone) throw new StreamInterruptedError("The stream ended before its end.", { requestId: request });
  } catch (raised) {
    // Everything is said by then; or nobody listens any more.
    if (isDone || deadline.isLeft) return;
    if (raised instanceof MnemosyneError) throw raised;
    const reason = deadline.explained(raised);
    if (!(reason instanceof APIConnectionError)) throw reason;
    throw new StreamInterruptedError(`The stream broke off: ${reason.message}`, { cause: raised, requestId: request });
  } finally {
    deadline.stop();
    deadline.controller.abort();
  }
}

function parsed(data: string, request: string | undefined): Record<string, unknown> {
  try {
    const said: unknown = JSON.parse(data);
    return isRecord(said) ? said : {};
  } catch (cause) {
    throw new StreamInterruptedError("The stream holds what is not JSON.", { cause, requestId: request });
  }
}

/** Undefined for a type that is not known here: an older client outlives a newer server. */
function chunkOf(said: Record<string, unknown>): ChatCompletionChunk | undefined {
  const { type, metadata, ...more } = said;
  const fields = received(more) as { [name: string]: unknown } & { sources?: Source[]; usage?: Usage };
  switch (type) {
    case "reasoning_step": {
      const { step, description } = fields as unknown as { step: number; description: string };
      return { ...shaped(type), reasoningStep: { step, description } };
    }
    case "sub_query":
      return { ...shaped(type), subQuery: String(fields["query"]) };
    case "sources":
      return { ...shaped(type), sources: fields.sources ?? [] };
    case "delta":
      return shaped(type, String(fields["content"] ?? ""));
    case "usage":
      return { ...shaped(type), ...(fields.usage && { usage: fields.usage }) };
    case "done":
      return { ...shaped(type), ...(fields.sources && { sources: fields.sources }), ...ending(metadata) };
    default:
      return undefined;
  }
}

function shaped(type: ChatCompletionChunk["type"], content?: string): ChatCompletionChunk {
  const delta = content === undefined ? {} : { content };
  const finishReason = type === "done" ? "stop" : null;
  return { object: "chat.completion.chunk", type, choices: [{ index: 0, delta, finishReason }] };
}
