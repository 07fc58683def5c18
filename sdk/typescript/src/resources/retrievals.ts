// client.retrievals

import type { RequestOptions } from "../calls.js";
import { RESULTS } from "../forms.js";
import type {
  Chunk,
  GraphQueryResult,
  RetrievalDetails,
  RetrievalResults,
  RetrieveParams,
} from "../models/chunk.js";
import { idOf } from "../names.js";
import type { Transport } from "../transport.js";
import { received } from "../utils.js";

interface Answer extends RetrievalDetails {
  readonly results: readonly (Chunk & { metadata: unknown })[];
}

export class RetrievalsResource {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  async retrieve(params: RetrieveParams, options?: RequestOptions): Promise<RetrievalResults> {
    const { collectionId: given } = params;
    const collectionId = given == null ? undefined : await idOf(this.#transport, "collection", given, options);
    // (It changes nothing, so it is repeated as a GET is.)
    const json = { ...params, collectionId };
    const call = { method: "POST", path: "/retrievals", json, isRepeatable: true, answer: RESULTS } as const;
    const { results, ...details } = await this.#transport.request<Answer>(call, options);
    // Of a chunk, and of it alone, `metadata` are the server's.
    const chunks = results.map((chunk): Chunk => {
      return { ...chunk, metadata: received(chunk.metadata) as Chunk["metadata"] };
    });
    return Object.assign(chunks, details);
  }

  /** The graph around the names in the query, and its chunks. */
  async graphQuery(
    params: Omit<RetrieveParams, "mode" | "enableGraph">,
    options?: RequestOptions,
  ): Promise<GraphQueryResult> {
    const found = await this.retrieve({ ...params, mode: "graph" }, options);
    const { query, graphContext: context, graph, retrievalMetadata } = found;
    const { entities, edges, evidence } = graph ?? { entities: [], edges: [], evidence: [] };
    return { query, context, entities, edges, evidence, chunks: [...found], retrievalMetadata };
  }
}
