// Requests: credentials, bodies, retries and the reading of answers.

import type { Call, PostOptions, TransportOptions, UploadOptions } from "./calls.js";
import { Deadline } from "./deadline.js";
import { APIError, MnemosyneError, NotFoundError } from "./errors.js";
import { failure, isFull, isOutOfKeys, isPassing, isRefused, mayBeDone, unexpected, uploadFailure } from "./failures.js";
import { amiss } from "./forms.js";
import { put } from "./uploads.js";
import { backOff, LONGEST_RETRY_AFTER, randomKey, received, sent, sleep, snake } from "./utils.js";

// What a header takes. fetch would quote anything else, the key, in its error.
const PRINTABLE = /^[!-~]+$/;

const TIMEOUT = 60_000;

// The last write of this client, which its searches see also on a read replica.
const READ_AFTER = "X-Rag-Read-After";

export interface Opened {
  readonly response: Response;
  readonly deadline: Deadline;
  readonly key: string;
}

export class Transport {
  readonly #options: TransportOptions;
  #readAfter = 0;

  constructor(options: TransportOptions) {
    this.#options = options;
    if (typeof options.apiKey !== "function") printable(options.apiKey, "apiKey");
  }

  /** The response's JSON with camelCase names; undefined for an empty response. */
  async request<T>(call: Call, options: PostOptions = {}): Promise<T> {
    // (A deletion that was done before has no answer.)
    return (await this.answer<T>(call, options))?.value;
  }

  /** The same, and the key that it was asked with, which may stand in it. */
  answer<T>(call: Call, options: PostOptions = {}): Promise<{ value: T; key: string }> {
    return this.#attempts(call, options, async (response, deadline, key) => {
      const text = await response.text().catch((raised: unknown) => {
        throw deadline.explained(raised);
      });
      deadline.stop();
      const body = text === "" ? undefined : parsed(text, response, key);
      const value = call.isCamelCase ? body : received(body);
      const missing = call.answer && response.ok ? amiss(value, call.answer) : undefined;
      if (missing !== undefined) throw unexpected(response, key, `${missing} is not what it has there`);
      return { value: value as T, key };
    });
  }

  /** A stream as soon as it begins, and what ends it; both are the caller's to close. */
  open(call: Call, options: PostOptions = {}): Promise<Opened> {
    return this.#attempts(call, options, (response, deadline, key) => {
      deadline.pause();
      if (!/^text\/event-stream\s*(;|$)/i.test(response.headers.get("content-type") ?? "")) {
        deadline.controller.abort();
        throw unexpected(response, key, "it is not a stream");
      }
      return Promise.resolve({ response, deadline, key });
    });
  }

  /** Sends a file to a signed URL, which gets no key. Each progress restarts the time-out. */
  async put(url: string, content: Blob, options: UploadOptions = {}): Promise<void> {
    const deadline = new Deadline(options.timeout ?? this.#options.timeout ?? TIMEOUT, options.signal);
    const progress = (sent: number): void => {
      deadline.start();
      options.onProgress?.(sent, content.size);
    };
    try {
      const response = await put(url, content, this.#options.fetch, deadline.controller.signal, progress).catch(
        (raised: unknown) => {
          throw deadline.explained(raised, `Storage at ${new URL(url).host}`, "the network");
        },
      );
      if (!response.ok) throw await uploadFailure(response, url);
    } finally {
      deadline.stop();
    }
  }

  async #attempts<T>(
    call: Call,
    options: PostOptions,
    read: (response: Response, deadline: Deadline, token: string) => Promise<T>,
  ): Promise<T> {
    let isPerhapsDone = false;
    // One for all attempts.
    let key = options.idempotencyKey ?? (call.isOncePerKey ? randomKey() : undefined);
    for (let attempt = 0; ; attempt++) {
      const timeLimit = options.timeout ?? this.#options.timeout ?? call.defaultTimeout ?? TIMEOUT;
      const deadline = new Deadline(timeLimit, options.signal);
      let token: string | undefined;
      try {
        token = await this.#token(deadline);
        return await read(await this.#send(call, key, token, deadline), deadline, token);
      } catch (raised) {
        deadline.stop();
        // The function for the key has failed; calling it again may do harm.
        if (token === undefined) throw raised;
        if (key !== options.idempotencyKey && !isPerhapsDone && isOutOfKeys(raised)) {
          // The caller has set none: the request goes without.
          key = undefined;
          attempt--;
          continue;
        }
        // An earlier attempt has deleted it, and its answer was lost.
        if (isPerhapsDone && call.method === "DELETE" && raised instanceof NotFoundError) return undefined as T;
        const wait = this.#wait(call, options, key, attempt, raised);
        if (wait === undefined) throw raised;
        isPerhapsDone ||= mayBeDone(raised);
        await sleep(wait, options.signal);
      }
    }
  }

  async #send(call: Call, key: string | undefined, token: string, deadline: Deadline): Promise<Response> {
    const headers = headersOf(call, key, token);
    if (this.#readAfter > 0) headers[READ_AFTER] = String(this.#readAfter);
    const body = call.form ? call.form() : call.json && JSON.stringify(call.isCamelCase ? call.json : sent(call.json));
    const response = await this.#options
      .fetch(this.#address(call), {
        method: call.method,
        headers,
        ...(body === undefined ? {} : { body }),
        signal: deadline.controller.signal,
        // A followed redirect might send the key to another host.
        redirect: "manual",
        credentials: "omit",
      })
      .catch((raised: unknown) => {
        throw deadline.explained(raised);
      });
    const written = Number(response.headers.get(READ_AFTER) ?? 0);
    if (Number.isSafeInteger(written) && written > this.#readAfter) this.#readAfter = written;
    if (response.ok || response.status === call.accepts) return response;
    throw await failure(response, token);
  }

  async #token(deadline: Deadline): Promise<string> {
    const { apiKey } = this.#options;
    if (typeof apiKey === "string") return apiKey;
    const asked = Promise.resolve().then(apiKey);
    return printable(await deadline.raced(asked, "The function apiKey returned no key"), "apiKey");
  }

  #address(call: Call): string {
    const asked = new URLSearchParams();
    for (const [name, value] of Object.entries(call.query ?? {})) {
      if (value !== undefined) asked.set(snake(name), String(value));
    }
    const query = asked.toString();
    const { baseUrl } = this.#options;
    const base = call.isAtRoot ? baseUrl.replace(/(\/api)?\/v1$/, "") : baseUrl;
    return `${base}${call.path}${query && `?${query}`}`;
  }

  /** Milliseconds until the next attempt; undefined for no further attempt. */
  #wait(
    call: Call,
    options: PostOptions,
    key: string | undefined,
    attempt: number,
    raised: unknown,
  ): number | undefined {
    if (attempt >= (options.maxRetries ?? this.#options.maxRetries)) return undefined;
    const isRepeatable = call.method !== "POST" || call.isRepeatable;
    if (!isRepeatable && key === undefined && !isRefused(raised)) return undefined;
    if (!isPassing(raised) || (!isRepeatable && isFull(raised))) return undefined;
    if (!(raised instanceof APIError) || raised.retryAfter === undefined) return backOff(attempt);
    return raised.retryAfter <= LONGEST_RETRY_AFTER ? raised.retryAfter * 1000 : undefined;
  }
}

function headersOf(call: Call, key: string | undefined, token: string): Record<string, string> {
  const headers: Record<string, string> = { Authorization: `Bearer ${token}` };
  if (call.json) headers["Content-Type"] = "application/json";
  if (key !== undefined) headers["Idempotency-Key"] = printable(key, "idempotencyKey");
  return headers;
}

function printable(value: string, name: string): string {
  if (typeof value !== "string" || !PRINTABLE.test(value)) {
    throw new MnemosyneError(`${name} must be printable characters without spaces.`);
  }
  return value;
}

function parsed(text: string, response: Response, key: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw unexpected(response, key, "it is not JSON");
  }
}
