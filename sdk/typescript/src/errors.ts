// Everything that can go wrong, as classes. None of them has a request's headers: no key is in any of them.

export class MnemosyneError extends Error {
  override readonly name: string = "MnemosyneError";
}

/** What the server says of an error; `details` are as they came, in the server's spelling. */
export interface ErrorFields {
  readonly status?: number | undefined;
  readonly type?: string | undefined;
  readonly code?: string | undefined;
  readonly requestId?: string | undefined;
  readonly details?: Readonly<Record<string, unknown>> | undefined;
  /** Seconds to wait before asking again. */
  readonly retryAfter?: number | undefined;
}

/** An answer that is an error: its status, and what its body says. */
export class APIError extends MnemosyneError {
  override readonly name: string = "APIError";
  readonly status: number | undefined;
  readonly type: string | undefined;
  readonly code: string | undefined;
  readonly requestId: string | undefined;
  readonly details: Readonly<Record<string, unknown>>;
  readonly retryAfter: number | undefined;

  constructor(message: string, fields: ErrorFields = {}) {
    super(message);
    this.status = fields.status;
    this.type = fields.type;
    this.code = fields.code;
    this.requestId = fields.requestId;
    this.details = fields.details ?? {};
    this.retryAfter = fields.retryAfter;
  }
}

/** 400: the request is not valid. */
export class BadRequestError extends APIError {
  override readonly name: string = "BadRequestError";
}

/** 400 or 422: a field is missing, or its value is not valid; `details.field` names it. */
export class ValidationError extends BadRequestError {
  override readonly name: string = "ValidationError";
}

/** 401: the key or the token is none, or has expired. */
export class AuthenticationError extends APIError {
  override readonly name: string = "AuthenticationError";
}

/** 403: the key has not the scope, or the person not the right. */
export class PermissionDeniedError extends APIError {
  override readonly name: string = "PermissionDeniedError";
}

/** 404: there is no such thing, or none that this caller may see. */
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

/** 429: too many requests, or no room in the org's tier. */
export class RateLimitError extends APIError {
  override readonly name: string = "RateLimitError";
}

/** 5xx: something went wrong on the server's side. */
export class InternalServerError extends APIError {
  override readonly name: string = "InternalServerError";
}

/** The answer is not one of this API: perhaps baseUrl leads elsewhere. */
export class UnexpectedResponseError extends APIError {
  override readonly name: string = "UnexpectedResponseError";
}

/** No answer came, or not the whole of it. */
export class APIConnectionError extends MnemosyneError {
  override readonly name: string = "APIConnectionError";
}

/** No answer came in time; of waitUntilReady: the document was not ready in time. */
export class APITimeoutError extends APIConnectionError {
  override readonly name: string = "APITimeoutError";
  /** Of waitUntilReady: the document's status when it was last seen. */
  readonly lastStatus: string | undefined;

  constructor(message: string, options: ErrorOptions & { lastStatus?: string | undefined } = {}) {
    super(message, options);
    this.lastStatus = options.lastStatus;
  }
}

/** A stream that ended before its last chunk; what came before it stands. */
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
    super(`Document ${documentId} failed: ${error?.message ?? "no reason is given"}`);
    this.documentId = documentId;
    this.code = error?.code;
  }
}
