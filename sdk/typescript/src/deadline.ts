// Early ends of a request: the caller's signal, a time-out, the end of reading a stream.

import { APIConnectionError, APITimeoutError, isUnreadable, unreadable } from "./errors.js";

// Timers take no more; a longer one would fire at once.
const LONGEST_TIMER = 2 ** 31 - 1;

export class Deadline {
  readonly controller = new AbortController();
  /** In milliseconds; a new value counts from the next start. */
  timeLimit: number;
  readonly #signal: AbortSignal | undefined;
  readonly #follow = (): void => this.controller.abort(this.#signal?.reason);
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isOver = false;
  #isLast = false;

  constructor(timeLimit: number, signal: AbortSignal | undefined) {
    this.timeLimit = timeLimit;
    this.#signal = signal;
    if (signal?.aborted) this.#follow();
    else signal?.addEventListener("abort", this.#follow, { once: true });
    this.start();
  }

  /** From now on. */
  start(): void {
    if (this.#isLast && this.#timer !== undefined) return;
    this.pause();
    this.#timer = setTimeout(() => {
      this.#isOver = true;
      this.controller.abort();
    }, Math.min(this.timeLimit, LONGEST_TIMER));
  }

  /** No wait is running. */
  pause(): void {
    if (this.#isLast && this.#timer !== undefined) return;
    this.#clear();
  }

  /** The rest of the request has so much time altogether, from the next start, pauses included. */
  endWithin(milliseconds: number): void {
    this.#clear();
    this.timeLimit = milliseconds;
    this.#isLast = true;
  }

  #clear(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** It is done with: neither timer nor listener stays behind. */
  stop(): void {
    this.#clear();
    this.#signal?.removeEventListener("abort", this.#follow);
  }

  /** The promise's value, or the end of this. `what` names the missing value. */
  raced<T>(promise: Promise<T>, what: string): Promise<T> {
    const { signal } = this.controller;
    return new Promise((resolve, reject) => {
      const stop = (): void => {
        if (this.#signal?.aborted) reject(this.#signal.reason);
        else reject(new APITimeoutError(`${what} within ${this.timeLimit} ms. Make it faster, or raise timeout.`));
      };
      if (signal.aborted) stop();
      else signal.addEventListener("abort", stop, { once: true });
      promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
    });
  }

  /** Whether the reader of a stream has ended it. */
  get isLeft(): boolean {
    return this.controller.signal.aborted && !this.#isOver && !this.#signal?.aborted;
  }

  /** The error to throw for an error of fetch: a caller's own abort with its reason. */
  explained(raised: unknown, server = "The server", check = "baseUrl and the network"): unknown {
    if (this.#signal?.aborted) return this.#signal.reason;
    if (this.#isOver) return new APITimeoutError(`No answer within ${this.timeLimit} ms. Try again, or raise timeout.`, { cause: raised });
    if (isUnreadable(raised)) return unreadable(raised);
    const message = `${server} could not be reached, or the connection broke. Check ${check}.`;
    return new APIConnectionError(message, { cause: raised });
  }
}
