// Names, waits and ids: what the transport and the resources share, without input or output.

import { MnemosyneError } from "./errors.js";

// What stands under these names is a user's own, or free in form: it is passed on as it is.
const FREE_FORM_FIELDS = new Set([
  "metadata",
  "metadata_filter",
  "document_metadata",
  "chunk_metadata",
  "processing_info",
  "meta",
]);

const FIRST_WAIT = 500;
const LONGEST_WAIT = 8_000;
// After a longer Retry-After the error is thrown at once.
export const LONGEST_RETRY_AFTER = 60;

/** The server's snake_case names as camelCase, at every depth but in the user's own values. */
export function received(value: unknown): unknown {
  return renamed(value, (name) => name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase()));
}

/** camelCase names as the server's; undefined values are not sent. */
export function sent(value: unknown): unknown {
  return renamed(value, snake);
}

function renamed(value: unknown, rename: (name: string) => string): unknown {
  if (Array.isArray(value)) return value.map((item) => renamed(item, rename));
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, inner]) => inner !== undefined)
      .map(([name, inner]) => [rename(name), FREE_FORM_FIELDS.has(snake(name)) ? inner : renamed(inner, rename)]),
  );
}

export function snake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** An id as a step of a path. Throws for an id that would lead to another path. */
export function step(id: string): string {
  if (typeof id !== "string" || id === "" || id === "." || id === "..") {
    throw new MnemosyneError("An id must be a text, and not empty.");
  }
  return encodeURIComponent(id);
}

/** Exponential back-off with full jitter, in milliseconds. */
export function backOff(attempt: number): number {
  return Math.random() * Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** attempt);
}

/** As good as any UUID. (crypto.randomUUID is not there for pages without TLS.) */
export function randomKey(): string {
  return hex(crypto.getRandomValues(new Uint8Array(16)).buffer);
}

export function hex(bytes: ArrayBuffer): string {
  return Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Seconds, from a number of them or a date; undefined where there is neither. */
export function retryAfter(headers: Headers): number | undefined {
  const said = headers.get("retry-after")?.trim();
  if (!said) return undefined;
  if (/^\d+(\.\d+)?$/.test(said)) return Number(said);
  const moment = Date.parse(said);
  return Number.isNaN(moment) ? undefined : Math.max(0, (moment - Date.now()) / 1000);
}

/** Rejects with the signal's reason as soon as it is aborted. Ends earlier with `change`. */
export function sleep(milliseconds: number, signal: AbortSignal | undefined, change?: Promise<void>): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const wake = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
      resolve();
    };
    const timer = setTimeout(wake, milliseconds);
    signal?.addEventListener("abort", stop, { once: true });
    void change?.then(wake);
  });
}

/** A variable of the environment, where there is one: a browser has none. */
export function fromEnvironment(name: string): string | undefined {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
  return process?.env?.[name] || undefined;
}

/** The value without the secret, at every depth. */
export function masked<T>(value: T, secret: string): T {
  return without(value, secret) as T;
}

function without(value: unknown, secret: string): unknown {
  if (typeof value === "string") return value.replaceAll(secret, "[the API key]");
  if (Array.isArray(value)) return value.map((item) => without(item, secret));
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [without(name, secret), without(inner, secret)]),
  );
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
