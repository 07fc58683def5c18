// What may be said of a call, by users and by the resources.

import type { Form } from "./forms.js";

export type ApiKey = string | (() => string | Promise<string>);

export interface RequestOptions {
  /** Ends the call, its waits between attempts included; the signal's reason is thrown. */
  signal?: AbortSignal | undefined;
  /** Milliseconds for an attempt; of a stream, for each wait until more comes. */
  timeout?: number | undefined;
  /** How often a call that failed may be repeated. */
  maxRetries?: number | undefined;
}

export interface PostOptions extends RequestOptions {
  /**
   * Sent as Idempotency-Key with every attempt; with it the call is repeated as a GET is. What makes a collection or a
   * document has one of its own where none is given.
   */
  idempotencyKey?: string | undefined;
}

export interface Call {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  readonly path: string;
  readonly query?: object;
  readonly json?: object;
  /** Made anew for each attempt. */
  readonly form?: () => FormData;
  /** A POST that does the same when it is done twice. */
  readonly isRepeatable?: boolean;
  /** A POST that the server does once for each Idempotency-Key. */
  readonly isOncePerKey?: boolean;
  /** What the answer must have. */
  readonly answer?: Form;
  /** Milliseconds for an attempt, where neither the call nor the client was told any. */
  readonly timeoutUnlessSaid?: number;
  /** An error's status whose body is an answer all the same. */
  readonly accepts?: number;
}

export interface TransportOptions {
  readonly baseUrl: string;
  readonly apiKey: ApiKey;
  readonly timeout: number | undefined;
  readonly maxRetries: number;
  readonly fetch: typeof globalThis.fetch;
}
