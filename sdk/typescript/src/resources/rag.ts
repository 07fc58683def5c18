// client.rag: it takes a user's token, no API key.

import { WHOLE_ANSWER } from "../answers.js";
import type { RequestOptions } from "../calls.js";
import { RAG_ANSWER, RESULTS } from "../forms.js";
import type { RagAnswerResponse, RagParams, RagSearchResponse } from "../models/rag.js";
import { idOf } from "../names.js";
import type { Transport } from "../transport.js";

export class RagResource {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** The best chunks. */
  async search(params: RagParams, options?: RequestOptions): Promise<RagSearchResponse> {
    const json = await this.#resolved(params, options);
    const call = { method: "POST", path: "/api/rag/search", isAtRoot: true, json } as const;
    return this.#transport.request({ ...call, isRepeatable: true, answer: RESULTS }, options);
  }

  /** An answer with citations; with low confidence only the closest passages. */
  async answer(params: RagParams, options?: RequestOptions): Promise<RagAnswerResponse> {
    const json = await this.#resolved(params, options);
    const call = { method: "POST", path: "/api/rag/answer", isAtRoot: true, json } as const;
    return this.#transport.request({ ...call, answer: RAG_ANSWER, defaultTimeout: WHOLE_ANSWER }, options);
  }

  async #resolved(params: RagParams, options: RequestOptions | undefined): Promise<RagParams> {
    const org = params.filters?.orgId;
    if (org === undefined) return params;
    return { ...params, filters: { ...params.filters, orgId: await idOf(this.#transport, "org", org, options) } };
  }
}
