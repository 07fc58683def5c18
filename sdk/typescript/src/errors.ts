// Errors of this package. None has a request's headers, so none contains a key.

export class MnemosyneError extends Error {
  override readonly name: string = "MnemosyneError";
}

/** The server's error; `details` have the server's spelling. */
export interface ErrorFields {
  readonly status?: number | undefined;
  readonly type?: string | undefined;
  readonly code?: string | undefined;
  readonly requestId?: string | undefined;
  readonly details?: Readonly<Record<string, unknown>> | undefined;
  /** Seconds to wait before the next request. */
  readonly retryAfter?: number | undefined;
}

function described(message: string, { status, code, requestId }: ErrorFields): string {
  const known = Object.entries({ status, code, request: requestId }).filter(([, value]) => value !== undefined);
  return known.length === 0 ? message : `${message} (${known.map((entry) => entry.join(" ")).join(", ")})`;
}

/** An error response: its status, and the error in its body. `message` also has status, code and request. */
export class APIError extends MnemosyneError {
  override readonly name: string = "APIError";
  readonly status: number | undefined;
  readonly type: string | undefined;
  readonly code: string | undefined;
  readonly requestId: string | undefined;
  readonly details: Readonly<Record<string, unknown>>;
  readonly retryAfter: number | undefined;

  constructor(message: string, fields: ErrorFields = {}) {
    super(described(message, fields));
    this.status = fields.status;
    this.type = fields.type;
    this.code = fields.code;
    this.requestId = fields.requestId;
    this.details = fields.details ?? {};
    this.retryAfter = fields.retryAfter;
  }
}

/** 400: the request is not valid. Check its arguments. */
export class BadRequestError extends APIError {
  override readonly name: string = "BadRequestError";
}

/** 400 or 422: a field is missing, or its value is not valid; `details.field` names it. */
export class ValidationError extends BadRequestError {
  override readonly name: string = "ValidationError";
}

/** 401: the key or the token is not valid, or has expired. */
export class AuthenticationError extends APIError {
  override readonly name: string = "AuthenticationError";
}

/** 403: the key lacks a scope, or its owner a right. */
export class PermissionDeniedError extends APIError {
  override readonly name: string = "PermissionDeniedError";
}

/** 404: the object does not exist, or the caller may not see it. */
export class NotFoundError extends APIError {
  override readonly name: string = "NotFoundError";
}

/** 409: it conflicts with an existing object, such as a document of the same content. */
export class ConflictError extends APIError {
  override readonly name: string = "ConflictError";
}

/** 413: the file or the body is too large. */
export class PayloadTooLargeError extends APIError {
  override readonly name: string = "PayloadTooLargeError";
}

/** 429: too many requests, or the org's tier is exhausted. */
export class RateLimitError extends APIError {
  override readonly name: string = "RateLimitError";
}

/** 5xx: the server failed. Try again later. */
export class InternalServerError extends APIError {
  override readonly name: string = "InternalServerError";
}

/** The response is not one of this API. Check baseUrl. */
export class UnexpectedResponseError extends APIError {
  override readonly name: string = "UnexpectedResponseError";
}

/** The project's Storage did not accept a large file; the status and the reason are Storage's. */
export class UploadFailedError extends APIError {
  override readonly name: string = "UploadFailedError";
}

/** No response, or an incomplete one. Check the network, or try again later. */
export class APIConnectionError extends MnemosyneError {
  override readonly name: string = "APIConnectionError";
}

/** The time-out was exceeded; of waitUntilReady: the document was not ready in time. */
export class APITimeoutError extends APIConnectionError {
  override readonly name: string = "APITimeoutError";
  /** Of waitUntilReady: the document's last known status. */
  readonly lastStatus: string | undefined;

  constructor(message: string, options: ErrorOptions & { lastStatus?: string | undefined } = {}) {
    super(message, options);
    this.lastStatus = options.lastStatus;
  }
}

/** A stream ended before its last chunk; the received chunks are valid. */
export class StreamInterruptedError extends APIConnectionError {
  override readonly name: string = "StreamInterruptedError";
  readonly requestId: string | undefined;

  constructor(message: string, options: ErrorOptions & { requestId?: string | undefined } = {}) {
    super(message, options);
    this.requestId = options.requestId;
  }
}

/** The document could not be read; `code` and the message are the document's own. */
export class DocumentFailedError extends MnemosyneError {
  override readonly name: string = "DocumentFailedError";
  readonly documentId: string;
  readonly code: string | undefined;

  constructor(documentId: string, error: { code: string; message: string } | null | undefined) {
    super(`Document ${documentId} failed: ${error?.message ?? "no reason is given"} (code ${error?.code ?? "unknown"})`);
    this.documentId = documentId;
    this.code = error?.code;
  }
}

/** The error for a file that could be opened, but not read. */
export function unreadable(cause: unknown): MnemosyneError {
  return new MnemosyneError("The file cannot be read. It may have changed while it was sent.", { cause });
}

/** Whether the reading of a Blob failed, and not the request. */
export function isUnreadable(raised: unknown): boolean {
  for (let cause = raised; cause instanceof Error; cause = cause.cause) {
    if (cause.name === "NotReadableError") return true;
  }
  return false;
}
