// client.records: feedback on answers, if the caller's org records its requests.

import type { RequestOptions } from "../calls.js";
import type { Transport } from "../transport.js";
import { step } from "../utils.js";

export class RecordsResource {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Rate the answer of one's own request, by its `metadata.requestId`; null removes the rating. */
  async rate(
    requestId: string,
    feedback: { rating: "up" | "down" | null; reason?: string | undefined },
    options?: RequestOptions,
  ): Promise<void> {
    const path = `/records/${step(requestId)}/feedback`;
    return this.#transport.request({ method: "POST", path, json: feedback, isRepeatable: true }, options);
  }
}
