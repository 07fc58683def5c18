// Options of a call, of users and of the resources.

import type { Form } from "./forms.js";

export type ApiKey = string | (() => string | Promise<string>);

export interface RequestOptions {
  /** Aborts the call, also between two attempts; the signal's reason is thrown. */
  signal?: AbortSignal | undefined;
  /** Milliseconds for an attempt; of a stream, for each wait for its next part. */
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

export interface UploadOptions extends PostOptions {
  /** Called with the number of bytes sent and the size, while a file above 6 MB is uploaded. */
  onProgress?: ((sent: number, size: number) => void) | undefined;
}

export interface Call {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  readonly path: string;
  readonly query?: object;
  readonly json?: object;
  /** The path is not below /api/v1. */
  readonly isAtRoot?: boolean;
  /** The server's names are camelCase, as the caller's are. */
  readonly isCamelCase?: boolean;
  /** Made anew for each attempt. */
  readonly form?: () => FormData;
  /** A POST without a further effect when it is repeated. */
  readonly isRepeatable?: boolean;
  /** A POST that the server executes once for each Idempotency-Key. */
  readonly isOncePerKey?: boolean;
  /** The required fields of the response. */
  readonly answer?: Form;
  /** Milliseconds for an attempt, if neither the call nor the client has a time-out. */
  readonly defaultTimeout?: number;
  /** An error status whose body is a valid response. */
  readonly accepts?: number;
}

export interface TransportOptions {
  readonly baseUrl: string;
  readonly apiKey: ApiKey;
  readonly timeout: number | undefined;
  readonly maxRetries: number;
  readonly fetch: typeof globalThis.fetch;
}
