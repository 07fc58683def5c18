// client.collections

import type { PostOptions, RequestOptions } from "../calls.js";
import { LISTED, MADE } from "../forms.js";
import type { Collection, CollectionChanges, ListCollections, NewCollection } from "../models/collection.js";
import { type Listed, Page } from "../pages.js";
import type { Transport } from "../transport.js";
import { step } from "../utils.js";

const PATH = "/collections";

interface DeleteOptions extends RequestOptions {
  cascade?: boolean | undefined;
}

export class CollectionsResource {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  create(params: NewCollection, options?: PostOptions): Promise<Collection> {
    const call = { method: "POST", path: PATH, json: params, isOncePerKey: true, answer: MADE } as const;
    return this.#transport.request(call, options);
  }

  list(params: ListCollections = {}, options?: RequestOptions): Promise<Page<Collection>> {
    const ask = (offset: number | undefined): Promise<Listed<Collection>> =>
      this.#transport.request({ method: "GET", path: PATH, query: { ...params, offset }, answer: LISTED }, options);
    return Page.at(ask, params.offset);
  }

  async get(collectionId: string, options?: RequestOptions): Promise<Collection> {
    return this.#transport.request({ method: "GET", path: `${PATH}/${step(collectionId)}`, answer: MADE }, options);
  }

  async update(
    collectionId: string,
    changes: CollectionChanges,
    options?: RequestOptions,
  ): Promise<Collection> {
    const path = `${PATH}/${step(collectionId)}`;
    return this.#transport.request({ method: "PATCH", path, json: changes, answer: MADE }, options);
  }

  /** One that has documents goes only with `cascade`. */
  async delete(collectionId: string, options: DeleteOptions = {}): Promise<void> {
    const { cascade, ...more } = options;
    const path = `${PATH}/${step(collectionId)}`;
    return this.#transport.request({ method: "DELETE", path, query: { cascade } }, more);
  }
}
