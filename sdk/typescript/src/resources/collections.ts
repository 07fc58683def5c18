// client.collections

import type { PostOptions, RequestOptions } from "../calls.js";
import { LISTED, MADE, QUEUED } from "../forms.js";
import type { Collection, CollectionChanges, GraphQueued, ListCollections, NewCollection } from "../models/collection.js";
import { idOf } from "../names.js";
import { type Listed, Page } from "../pages.js";
import type { Transport } from "../transport.js";
import { step } from "../utils.js";

const PATH = "/collections";

interface DeleteOptions extends RequestOptions {
  cascade?: boolean | undefined;
}

interface GraphOptions extends RequestOptions {
  again?: boolean | undefined;
}

/** A `collectionId` and an `orgId` may also be names. */
export class CollectionsResource {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  async create(params: NewCollection, options?: PostOptions): Promise<Collection> {
    const orgId = params.orgId && (await idOf(this.#transport, "org", params.orgId, options));
    const call = { method: "POST", path: PATH, json: { ...params, orgId }, isOncePerKey: true, answer: MADE } as const;
    return this.#transport.request(call, options);
  }

  list(params: ListCollections = {}, options?: RequestOptions): Promise<Page<Collection>> {
    const ask = (offset: number | undefined): Promise<Listed<Collection>> =>
      this.#transport.request({ method: "GET", path: PATH, query: { ...params, offset }, answer: LISTED }, options);
    return Page.at(ask, params.offset);
  }

  async get(collectionId: string, options?: RequestOptions): Promise<Collection> {
    const path = await this.#path(collectionId, options);
    return this.#transport.request({ method: "GET", path, answer: MADE }, options);
  }

  async update(
    collectionId: string,
    changes: CollectionChanges,
    options?: RequestOptions,
  ): Promise<Collection> {
    const path = await this.#path(collectionId, options);
    return this.#transport.request({ method: "PATCH", path, json: changes, answer: MADE }, options);
  }

  /** Deletes the collection; one with documents only with `cascade`. */
  async delete(collectionId: string, options: DeleteOptions = {}): Promise<void> {
    const { cascade, ...more } = options;
    const path = await this.#path(collectionId, more);
    return this.#transport.request({ method: "DELETE", path, query: { cascade } }, more);
  }

  /** Queues the documents without a graph, or whose extraction was given up; with `again` all documents. */
  async buildGraph(collectionId: string, options: GraphOptions = {}): Promise<GraphQueued> {
    const { again = false, ...more } = options;
    const path = `${await this.#path(collectionId, more)}/graph`;
    const call = { method: "POST", path, json: { again }, isRepeatable: true, answer: QUEUED } as const;
    return this.#transport.request(call, more);
  }

  async #path(collectionId: string, options: RequestOptions | undefined): Promise<string> {
    return `${PATH}/${step(await idOf(this.#transport, "collection", collectionId, options))}`;
  }
}
