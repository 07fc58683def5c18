// client.documents

import type { PostOptions, RequestOptions } from "../calls.js";
import { APIError, APITimeoutError, DocumentFailedError } from "../errors.js";
import { isPassing } from "../failures.js";
import { fileOf } from "../files.js";
import type {
  Document,
  DocumentChanges,
  ListDocuments,
  NewDocument,
  NewDocumentFromText,
  NewDocumentFromUrl,
  WaitOptions,
} from "../models/document.js";
import { type Listed, Page } from "../pages.js";
import type { Transport } from "../transport.js";
import { sleep, step } from "../utils.js";

const PATH = "/documents";
const READY_WITHIN = 300_000;
// Between two looks: growing by half, with up to a quarter more, so that many who wait spread out.
const FIRST_LOOK = 500;
const LONGEST_LOOK = 10_000;

export class DocumentsResource {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** A file, of at most 6 MB. A stream is read into memory first. */
  async create(params: NewDocument, options?: PostOptions): Promise<Document> {
    const { content, name } = await fileOf(params.file, params.contentType);
    const form = (): FormData => {
      const made = new FormData();
      made.set("collection_id", params.collectionId);
      if (params.metadata) made.set("metadata", JSON.stringify(params.metadata));
      if (params.private !== undefined) made.set("private", String(params.private));
      if (params.externalId !== undefined) made.set("external_id", params.externalId);
      made.set("file", content, params.filename ?? name ?? "unnamed");
      return made;
    };
    const isRepeatable = params.externalId !== undefined;
    const call = { method: "POST", path: PATH, form, isRepeatable, isOncePerKey: true } as const;
    return this.#transport.request(call, options);
  }

  /** A page or a file of the public internet, fetched by the server. */
  createFromUrl(params: NewDocumentFromUrl, options?: PostOptions): Promise<Document> {
    const call = { method: "POST", path: `${PATH}/url`, json: params, isOncePerKey: true } as const;
    return this.#transport.request(call, options);
  }

  createFromText(params: NewDocumentFromText, options?: PostOptions): Promise<Document> {
    const isRepeatable = params.externalId !== undefined;
    const path = `${PATH}/text`;
    const call = { method: "POST", path, json: params, isRepeatable, isOncePerKey: true } as const;
    return this.#transport.request(call, options);
  }

  list(params: ListDocuments, options?: RequestOptions): Promise<Page<Document>> {
    const ask = (offset: number | undefined): Promise<Listed<Document>> =>
      this.#transport.request({ method: "GET", path: PATH, query: { ...params, offset } }, options);
    return Page.at(ask, params.offset);
  }

  async get(documentId: string, options?: RequestOptions): Promise<Document> {
    return this.#transport.request({ method: "GET", path: `${PATH}/${step(documentId)}` }, options);
  }

  async update(documentId: string, changes: DocumentChanges, options?: RequestOptions): Promise<Document> {
    const path = `${PATH}/${step(documentId)}`;
    return this.#transport.request({ method: "PATCH", path, json: changes }, options);
  }

  async delete(documentId: string, options?: RequestOptions): Promise<void> {
    return this.#transport.request({ method: "DELETE", path: `${PATH}/${step(documentId)}` }, options);
  }

  /** The document when it is completed. A server that is gone for a while, or busy, is asked again. */
  async waitUntilReady(documentId: string, options: WaitOptions = {}): Promise<Document> {
    const { timeout = READY_WITHIN, signal } = options;
    const end = Date.now() + timeout;
    let lastStatus: string | undefined;
    for (let interval = FIRST_LOOK; ; interval = Math.min(LONGEST_LOOK, interval * 1.5)) {
      let told = 0;
      try {
        const patience = Math.min(LONGEST_LOOK, Math.max(1, end - Date.now()));
        const document = await this.get(documentId, { maxRetries: 0, signal, timeout: patience });
        lastStatus = document.status;
        if (lastStatus === "completed") return document;
        if (lastStatus === "failed") throw new DocumentFailedError(documentId, document.error);
      } catch (raised) {
        if (!isPassing(raised)) throw raised;
        if (raised instanceof APIError) told = 1000 * (raised.retryAfter ?? 0);
      }
      const left = end - Date.now();
      if (left <= told) {
        const seen = lastStatus ? `it is still ${lastStatus}` : "it was never seen";
        const message = `Document ${documentId} was not ready within ${timeout} ms: ${seen}.`;
        throw new APITimeoutError(message, { lastStatus });
      }
      // (The last look is at the very end.)
      await sleep(Math.min(left, Math.max(told, interval * (1 + Math.random() / 4))), signal);
    }
  }
}
