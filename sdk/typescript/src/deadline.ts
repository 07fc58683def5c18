// What may end a request early: the caller's signal, a time-out, and whoever reads a stream.

import { APIConnectionError, APITimeoutError } from "./errors.js";

// Timers take no more; a longer one would fire at once.
const LONGEST_TIMER = 2 ** 31 - 1;

export class Deadline {
  readonly controller = new AbortController();
  /** In milliseconds; what is set here counts from the next start. */
  patience: number;
  readonly #signal: AbortSignal | undefined;
  readonly #follow = (): void => this.controller.abort(this.#signal?.reason);
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isOver = false;
  #isLast = false;

  constructor(patience: number, signal: AbortSignal | undefined) {
    this.patience = patience;
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
    }, Math.min(this.patience, LONGEST_TIMER));
  }

  /** Nobody waits just now. */
  pause(): void {
    if (this.#isLast && this.#timer !== undefined) return;
    this.#clear();
  }

  /** What is still to come has so much time altogether, from the next start, whatever pauses there are. */
  endWithin(milliseconds: number): void {
    this.#clear();
    this.patience = milliseconds;
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

  /** What is promised, or the end of this. `what` says what did not come. */
  raced<T>(promise: Promise<T>, what: string): Promise<T> {
    const { signal } = this.controller;
    return new Promise((resolve, reject) => {
      const stop = (): void => {
        if (this.#signal?.aborted) reject(this.#signal.reason);
        else reject(new APITimeoutError(`${what} within ${this.patience} ms.`));
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

  /** What is to be thrown for what fetch has thrown: a caller's own abort with the reason that it gave. */
  explained(raised: unknown): unknown {
    if (this.#signal?.aborted) return this.#signal.reason;
    if (this.#isOver) return new APITimeoutError(`No answer within ${this.patience} ms.`, { cause: raised });
    return new APIConnectionError("The server could not be reached, or broke off.", { cause: raised });
  }
}
