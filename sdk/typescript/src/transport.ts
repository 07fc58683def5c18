// Requests: who asks, what is sent, what is repeated, and how an answer is read.

import type { Call, PostOptions, TransportOptions } from "./calls.js";
import { Deadline } from "./deadline.js";
import { APIError, MnemosyneError, NotFoundError } from "./errors.js";
import { failure, isFull, isOutOfKeys, isPassing, isRefused, requestId } from "./failures.js";
import { backOff, LONGEST_RETRY_AFTER, randomKey, received, sent, sleep, snake } from "./utils.js";

// What a header takes. fetch would quote anything else, the key, in its error.
const PRINTABLE = /^[!-~]+$/;

export class Transport {
  readonly #options: TransportOptions;

  constructor(options: TransportOptions) {
    this.#options = options;
    if (typeof options.apiKey !== "function") printable(options.apiKey, "apiKey");
  }

  /** The answer's JSON, in our names; undefined where the server says nothing. */
  request<T>(call: Call, options: PostOptions = {}): Promise<T> {
    return this.#attempts(call, options, async (response, deadline) => {
      const text = await response.text().catch((raised: unknown) => {
        throw deadline.explained(raised);
      });
      deadline.stop();
      return (text === "" ? undefined : received(parsed(text, response))) as T;
    });
  }

  /** The answer as soon as it begins, and what ends it; both are the caller's to close. */
  open(call: Call, options: PostOptions = {}): Promise<{ response: Response; deadline: Deadline }> {
    return this.#attempts(call, options, (response, deadline) => {
      deadline.pause();
      return Promise.resolve({ response, deadline });
    });
  }

  async #attempts<T>(
    call: Call,
    options: PostOptions,
    read: (response: Response, deadline: Deadline) => Promise<T>,
  ): Promise<T> {
    let mayBeDone = false;
    // One for all attempts.
    let key = options.idempotencyKey ?? (call.isOncePerKey ? randomKey() : undefined);
    for (let attempt = 0; ; attempt++) {
      const deadline = new Deadline(options.timeout ?? this.#options.timeout, options.signal);
      try {
        return await read(await this.#send(call, key, deadline), deadline);
      } catch (raised) {
        deadline.stop();
        if (key !== options.idempotencyKey && !mayBeDone && isOutOfKeys(raised)) {
          // Nobody asked for one: it goes without.
          key = undefined;
          attempt--;
          continue;
        }
        // An earlier attempt has deleted it, and its answer was lost.
        if (mayBeDone && call.method === "DELETE" && raised instanceof NotFoundError) return undefined as T;
        const wait = this.#wait(call, options, key, attempt, raised);
        if (wait === undefined) throw raised;
        mayBeDone ||= !isRefused(raised);
        await sleep(wait, options.signal);
      }
    }
  }

  async #send(call: Call, key: string | undefined, deadline: Deadline): Promise<Response> {
    const headers = await this.#headers(call, key);
    const body = call.form ? call.form() : call.json && JSON.stringify(sent(call.json));
    const response = await this.#options
      .fetch(this.#address(call), {
        method: call.method,
        headers,
        ...(body === undefined ? {} : { body }),
        signal: deadline.controller.signal,
        // Followed, the key might go along to another host.
        redirect: "manual",
        credentials: "omit",
      })
      .catch((raised: unknown) => {
        throw deadline.explained(raised);
      });
    if (response.ok || response.status === call.accepts) return response;
    throw await failure(response);
  }

  async #headers(call: Call, key: string | undefined): Promise<Record<string, string>> {
    const { apiKey } = this.#options;
    const token = typeof apiKey === "string" ? apiKey : await apiKey();
    const headers: Record<string, string> = { Authorization: `Bearer ${printable(token, "apiKey")}` };
    if (call.json) headers["Content-Type"] = "application/json";
    if (key !== undefined) headers["Idempotency-Key"] = printable(key, "idempotencyKey");
    return headers;
  }

  #address(call: Call): string {
    const asked = new URLSearchParams();
    for (const [name, value] of Object.entries(call.query ?? {})) {
      if (value !== undefined) asked.set(snake(name), String(value));
    }
    const query = asked.toString();
    return `${this.#options.baseUrl}${call.path}${query && `?${query}`}`;
  }

  /** Milliseconds until the next attempt; undefined where there is to be none. */
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

function printable(value: string, name: string): string {
  if (typeof value !== "string" || !PRINTABLE.test(value)) {
    throw new MnemosyneError(`${name} must be printable characters without spaces.`);
  }
  return value;
}

function parsed(text: string, response: Response): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new APIError("The answer is not JSON. Is baseUrl that of the API?", {
      status: response.status,
      requestId: requestId(response),
    });
  }
}
