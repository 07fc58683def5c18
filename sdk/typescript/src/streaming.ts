// Server-sent events: their data, whatever the packets; and a stream that is read once and may be left.

import type { Deadline } from "./deadline.js";
import { MnemosyneError } from "./errors.js";

/** Lines end at \n, \r\n and \r, and at nothing else: JSON may hold what other splitters take for an end. */
const LINE_END = /\r\n|\n|\r/;

/** A sequence to be iterated once. The end of the loop, `close()` and `controller.abort()` close the connection. */
export class Stream<T> implements AsyncIterable<T> {
  readonly controller: AbortController;
  readonly #items: AsyncGenerator<T>;
  #isBegun = false;

  /** `end` is called when it is left, also unread. */
  constructor(items: AsyncGenerator<T>, controller: AbortController, end: () => void) {
    this.#items = items;
    this.controller = controller;
    if (controller.signal.aborted) end();
    else controller.signal.addEventListener("abort", end, { once: true });
  }

  [Symbol.asyncIterator](): AsyncIterator<T> {
    if (this.#isBegun) throw new MnemosyneError("A stream can be read once.");
    this.#isBegun = true;
    return {
      next: () => this.#items.next(),
      return: (value?: unknown) => {
        // (A generator that was never asked for anything closes nothing when it is left.)
        this.close();
        return this.#items.return(value);
      },
    };
  }

  close(): void {
    this.controller.abort();
  }
}

/** The name ("" without one) and the data of each event. Comments, other fields and an incomplete event are skipped. */
export async function* events(
  body: ReadableStream<Uint8Array>,
  deadline: Deadline,
): AsyncGenerator<readonly [name: string, data: string]> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const lines = new Lines();
  let name = "";
  let data: string[] = [];
  for (;;) {
    deadline.start();
    const { done, value } = await reader.read().catch((raised: unknown) => {
      throw deadline.explained(raised);
    });
    deadline.pause();
    if (done) return;
    for (const line of lines.of(decoder.decode(value, { stream: true }))) {
      if (line.startsWith("data:")) data.push(line.slice(line[5] === " " ? 6 : 5));
      if (line.startsWith("event:")) name = line.slice(6).trim();
      if (line !== "") continue;
      if (data.length > 0) yield [name, data.join("\n")];
      [name, data] = ["", []];
    }
  }
}

class Lines {
  #rest: string[] = [];
  #endedWithReturn = false;

  /** Those that are complete by now. */
  of(text: string): string[] {
    if (text === "") return [];
    // The other half of a line end was in the packet before.
    const fresh = this.#endedWithReturn && text.startsWith("\n") ? text.slice(1) : text;
    this.#endedWithReturn = text.endsWith("\r");
    const [first = "", ...more] = fresh.split(LINE_END);
    // Kept in pieces: joined with every packet, a long line would cost the square of its length.
    this.#rest.push(first);
    const last = more.pop();
    if (last === undefined) return [];
    const lines = [this.#rest.join(""), ...more];
    this.#rest = [last];
    return lines;
  }
}
