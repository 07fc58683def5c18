// What the package exports.

export type { ApiKey, PostOptions, RequestOptions, UploadOptions } from "./calls.js";
export { type ClientOptions, Mnemosyne } from "./client.js";
export {
  APIConnectionError,
  APIError,
  APITimeoutError,
  AuthenticationError,
  BadRequestError,
  ConflictError,
  DocumentFailedError,
  type ErrorFields,
  InternalServerError,
  MnemosyneError,
  NotFoundError,
  PayloadTooLargeError,
  PermissionDeniedError,
  RateLimitError,
  StreamInterruptedError,
  UnexpectedResponseError,
  UploadFailedError,
  ValidationError,
} from "./errors.js";
export type { FileContent, FileInput } from "./files.js";
export type * from "./models/index.js";
export { type ListParams, Page, type Pagination } from "./pages.js";
export type { RealtimeChannel, RealtimeClient } from "./realtime.js";
export * from "./resources/index.js";
export { Stream } from "./streaming.js";
