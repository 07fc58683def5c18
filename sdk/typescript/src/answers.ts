// Answers, whole and in parts: of the chat as completions, and of the search contract.

import type { Deadline } from "./deadline.js";
import { APIConnectionError, StreamInterruptedError } from "./errors.js";
import { errorOf, requestId, unexpected } from "./failures.js";
import { amiss, ENDING, SEARCH_ANSWER } from "./forms.js";
import type { ChatCompletion, ChatCompletionChunk, ChatMetadata, Source, Usage } from "./models/chat.js";
import type { AnswerEvent, AnswerMeta, AnswerResponse, Citation } from "./models/search.js";
import { events } from "./streaming.js";
import { isRecord, received } from "./utils.js";

// After the last chunk there is only the end of the answer to wait for.
const END_TIMEOUT_MS = 1_000;
// Milliseconds: a deep answer may take the server 95 seconds.
export const WHOLE_ANSWER = 180_000;

/** The response to a turn. */
export interface Answer {
  readonly query: string;
  readonly response: string;
  readonly sources: readonly Source[];
  readonly usage: Usage;
  readonly metadata: unknown;
}

type Highlights = "metadata" | "sessionId" | "confidence" | "confidenceDetail" | "isFollowUp" | "subQueries";
type Ending = Required<Pick<ChatCompletionChunk, Highlights>>;

export function completion(answer: Answer): ChatCompletion {
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

/** Of a turn, `metadata` are the server's; the most frequent ones stand beside them. */
function ending(said: unknown): Ending {
  const metadata = received(said) as ChatMetadata;
  const { sessionId, confidence, confidenceDetail, isFollowUp, subQueries } = metadata;
  return { metadata, sessionId, confidence, confidenceDetail, isFollowUp, subQueries };
}

interface Seen {
  readonly requestId: string | undefined;
}

export function chunks(response: Response, deadline: Deadline, key: string): AsyncGenerator<ChatCompletionChunk> {
  return parts(response, deadline, key, "done", (said, _, seen) => {
    if (said["type"] === "error") {
      throw errorOf({ error: said["error_detail"] ?? { message: said["error"] } }, seen, key);
    }
    if (said["type"] === "done" && amiss(said, ENDING)) {
      throw unexpected(response, key, "its end has no metadata");
    }
    return chunkOf(said);
  });
}

/** The same of the search contract's answer. */
export function answerEvents(response: Response, deadline: Deadline, key: string): AsyncGenerator<AnswerEvent> {
  return parts(response, deadline, key, "final", (said, type, seen) => {
    if (type === "error") throw errorOf(said, seen, key);
    if (type === "final" && amiss(said, SEARCH_ANSWER)) throw unexpected(response, key, "its end has no answer");
    switch (type) {
      case "meta":
        return { type, meta: said as unknown as AnswerMeta };
      case "token":
        return { type, text: String(said["text"]) };
      case "citation":
        return { type, citation: said as unknown as Citation };
      case "final":
        return { type, answer: said as unknown as AnswerResponse };
      default:
        return undefined;
    }
  });
}

/** Throws the errors of `partOf`, and StreamInterruptedError for a stream without its last part. */
async function* parts<T extends { readonly type: string }>(
  response: Response,
  deadline: Deadline,
  key: string,
  last: T["type"],
  partOf: (said: Record<string, unknown>, name: string, seen: Seen) => T | undefined,
): AsyncGenerator<T> {
  const seen = { requestId: requestId(response, key) };
  let isDone = false;
  try {
    if (response.body === null) throw new StreamInterruptedError("The stream is empty. Send the request again.", seen);
    for await (const [name, data] of events(response.body, deadline)) {
      const part = partOf(parsed(data, seen), name, seen);
      if (part === undefined) continue;
      isDone ||= part.type === last;
      if (part.type === last) deadline.endWithin(END_TIMEOUT_MS);
      yield part;
    }
    if (!isDone) throw new StreamInterruptedError("The stream ended early. Send the request again.", seen);
  } catch (raised) {
    // The answer is complete, or the caller has left.
    if (isDone || deadline.isLeft) return;
    if (!(raised instanceof APIConnectionError) || raised instanceof StreamInterruptedError) throw raised;
    throw new StreamInterruptedError(`The stream broke off: ${raised.message}`, { cause: raised, ...seen });
  } finally {
    deadline.stop();
    deadline.controller.abort();
  }
}

function parsed(data: string, seen: Seen): Record<string, unknown> {
  try {
    const said: unknown = JSON.parse(data);
    return isRecord(said) ? said : {};
  } catch {
    // (Its cause would quote what came, which may be the key.)
    throw new StreamInterruptedError("The stream contains a part that is not JSON. Check baseUrl.", seen);
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
