// client.search: the search contract.

import { answerEvents, WHOLE_ANSWER } from "../answers.js";
import type { Call, PostOptions, RequestOptions } from "../calls.js";
import { CONTENTS, type Form, MATCHES, RESULTS, SEARCH_ANSWER } from "../forms.js";
import type {
  AnswerEvent,
  AnswerParams,
  AnswerResponse,
  ContentsParams,
  ContentsResponse,
  ScopeParams,
  SearchParams,
  SearchResponse,
  SimilarParams,
  SimilarResponse,
} from "../models/search.js";
import { idOf } from "../names.js";
import { Stream } from "../streaming.js";
import type { Transport } from "../transport.js";

type Whole = AnswerParams & { stream?: false | undefined };
type Streamed = AnswerParams & { stream: true };

/** Each call searches the collection `collectionId`, or with `scope: "org"` the org `orgId`; both may be names. */
export class SearchResource {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Ranked chunks with highlights, and with `include.rationale` the reasons of the router. */
  async search(params: SearchParams, options?: RequestOptions): Promise<SearchResponse> {
    const call = await this.#call("search", params, RESULTS, options);
    return this.#transport.request({ ...call, isRepeatable: true }, options);
  }

  /** Chunks or documents like a text, a chunk or a document. */
  async similar(params: SimilarParams, options?: RequestOptions): Promise<SimilarResponse> {
    const call = await this.#call("similar", params, MATCHES, options);
    return this.#transport.request({ ...call, isRepeatable: true }, options);
  }

  /** At most 100 documents and chunks by their ids. */
  async contents(params: ContentsParams, options?: RequestOptions): Promise<ContentsResponse> {
    const call = await this.#call("contents", params, CONTENTS, options);
    return this.#transport.request({ ...call, isRepeatable: true }, options);
  }

  /**
   * An answer in which every sentence is checked. With an `idempotencyKey` a repeated call within a day returns the
   * first answer.
   */
  answer(params: Whole, options?: PostOptions): Promise<AnswerResponse>;
  answer(params: Streamed, options?: PostOptions): Promise<Stream<AnswerEvent>>;
  async answer(params: AnswerParams, options?: PostOptions): Promise<AnswerResponse | Stream<AnswerEvent>> {
    const call = await this.#call("answer", params, SEARCH_ANSWER, options);
    if (!params.stream) return this.#transport.request({ ...call, defaultTimeout: WHOLE_ANSWER }, options);
    const { response, deadline, key } = await this.#transport.open(call, options);
    return new Stream(answerEvents(response, deadline, key), deadline.controller, () => deadline.stop());
  }

  async #call(route: string, params: ScopeParams, answer: Form, options: PostOptions | undefined): Promise<Call> {
    const { collectionId, orgId, ...more } = params;
    const workspaceId = collectionId && (await idOf(this.#transport, "collection", collectionId, options));
    const organizationId = orgId && (await idOf(this.#transport, "org", orgId, options));
    const json = { ...more, workspaceId, organizationId };
    return { method: "POST", path: `/v1/${route}`, isAtRoot: true, isCamelCase: true, json, answer };
  }
}
