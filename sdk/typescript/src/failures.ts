// Errors of responses, by their status and envelope.

import {
  APIConnectionError,
  APIError,
  AuthenticationError,
  BadRequestError,
  ConflictError,
  type ErrorFields,
  InternalServerError,
  NotFoundError,
  PayloadTooLargeError,
  PermissionDeniedError,
  RateLimitError,
  UnexpectedResponseError,
  UploadFailedError,
  ValidationError,
} from "./errors.js";
import { isRecord, masked, retryAfter } from "./utils.js";

// After these another attempt may meet something else.
const PASSING = new Set([408, 429, 500, 502, 503, 504]);
const BY_STATUS: Readonly<Record<number, typeof APIError>> = {
  400: BadRequestError,
  401: AuthenticationError,
  403: PermissionDeniedError,
  404: NotFoundError,
  409: ConflictError,
  413: PayloadTooLargeError,
  422: ValidationError,
  429: RateLimitError,
};
const OF_A_FIELD = new Set(["missing_required_field", "invalid_field_value"]);
// A stream's error has no status of its own: the envelope's type stands for one.
const STATUS_OF_TYPE: Readonly<Record<string, number>> = {
  invalid_request_error: 400,
  authentication_error: 401,
  permission_error: 403,
  not_found_error: 404,
  rate_limit_error: 429,
  server_error: 500,
  // The search contract's codes, in place of a type.
  INVALID_ARGUMENT: 400,
  UNAUTHENTICATED: 401,
  PERMISSION_DENIED: 403,
  NOT_FOUND: 404,
  CONFLICT: 409,
  RATE_LIMITED: 429,
  UNAVAILABLE: 503,
};

type Seen = Pick<ErrorFields, "status" | "requestId" | "retryAfter">;

/**
 * The error for an envelope `{error: {type, code, message, details}}`, or for a body that is none. What a server says
 * may be what it was sent: the key is taken out of it.
 */
export function errorOf(body: unknown, seen: Seen, key: string): APIError {
  const said = isRecord(body) && isRecord(body["error"]) ? masked(body["error"], key) : {};
  const type = text(said["type"]);
  const code = text(said["code"]);
  const status = seen.status ?? STATUS_OF_TYPE[type ?? code ?? ""];
  const details = isRecord(said["details"]) ? said["details"] : {};
  const message = text(said["message"]) ?? `The API gave no reason. ${remedy(status ?? 500)}`;
  return new (classOf(status, code))(message, { ...seen, status, type, code, details });
}

/** Advice for a response without the API's reason, such as a proxy's. */
function remedy(status: number): string {
  if (status >= 500 || status === 408 || status === 429) return "Try again later.";
  return status === 413 ? "Send less." : "Check the API key and baseUrl.";
}

function classOf(status: number | undefined, code: string | undefined): typeof APIError {
  if (status === undefined) return APIError;
  if (status === 400 && code !== undefined && OF_A_FIELD.has(code)) return ValidationError;
  return BY_STATUS[status] ?? (status >= 500 ? InternalServerError : APIError);
}

function text(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** The error of an error response. */
export async function failure(response: Response, key: string): Promise<APIError> {
  const seen = {
    status: response.status,
    requestId: requestId(response, key),
    retryAfter: retryAfter(response.headers),
  };
  if (response.type === "opaqueredirect" || (response.status >= 300 && response.status < 400)) {
    await response.body?.cancel();
    return new UnexpectedResponseError("The server redirects, which is not followed. Check baseUrl.", seen);
  }
  const body: unknown = await response.json().catch(() => undefined);
  return errorOf(body, seen, key);
}

/** The error of an upload to a signed URL, whose token is in no error. */
export async function uploadFailure(response: Response, url: string): Promise<UploadFailedError> {
  const body: unknown = await response.json().catch(() => undefined);
  const reason = (isRecord(body) && text(body["message"])) || "it gave no reason";
  const message = `Storage did not accept the file: ${reason}. Create the document again.`;
  const token = new URL(url).searchParams.get("token") || url;
  return new UploadFailedError(message.replaceAll(token, "[the token]"), { status: response.status });
}

export function requestId(response: Response, key: string): string | undefined {
  return masked(response.headers.get("x-request-id") ?? undefined, key);
}

/** The error for a response that is not this API's; `what` is the reason. */
export function unexpected(response: Response, key: string, what: string): UnexpectedResponseError {
  const message = `The response is not one of this API, ${what}. Check baseUrl.`;
  return new UnexpectedResponseError(message, { status: response.status, requestId: requestId(response, key) });
}

/** A temporary error. */
export function isPassing(raised: unknown): boolean {
  if (raised instanceof APIConnectionError) return true;
  return raised instanceof APIError && (PASSING.has(raised.status ?? 0) || isUnderWay(raised));
}

/** An earlier attempt with the same key is running. */
function isUnderWay(error: APIError): boolean {
  const reason = error.details["reason"] ?? error.code;
  return error.status === 409 && reason === "request_in_progress" && error.retryAfter !== undefined;
}

/** The server stores too many idempotency keys of this caller. */
export function isOutOfKeys(raised: unknown): boolean {
  return raised instanceof APIError && raised.status === 429 && raised.code === "too_many_replies";
}

/** The org's tier is exhausted: also a 429, but without Retry-After. */
export function isFull(raised: unknown): boolean {
  return raised instanceof APIError && raised.status === 429 && raised.retryAfter === undefined;
}

/** By the rate limit, before anything was done. */
export function isRefused(raised: unknown): boolean {
  return raised instanceof APIError && raised.status === 429 && raised.retryAfter !== undefined;
}

// No connection came about. (A browser does not tell: there it is not known.)
const NOT_SENT = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
]);

/** Whether the server may have executed the request. */
export function mayBeDone(raised: unknown): boolean {
  if (raised instanceof APIError) return (raised.status ?? 0) >= 500;
  let cause: unknown = raised;
  while (cause instanceof Error) {
    if (NOT_SENT.has(String((cause as { code?: unknown }).code))) return false;
    cause = cause.cause;
  }
  return true;
}
