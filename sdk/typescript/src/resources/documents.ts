// client.documents

import type { Call, PostOptions, RequestOptions, UploadOptions } from "../calls.js";
import { APIError, APITimeoutError, DocumentFailedError } from "../errors.js";
import { isPassing } from "../failures.js";
import { fileOf, hashOf, MAX_REQUEST_BYTES } from "../files.js";
import { DOCUMENT, LINK, LISTED, MADE, PROGRESS, TICKET } from "../forms.js";
import type {
  Document,
  DocumentChanges,
  DocumentLink,
  DocumentProgress,
  ListDocuments,
  NewDocument,
  NewDocumentFromText,
  NewDocumentFromUrl,
  WaitOptions,
} from "../models/document.js";
import { idOf } from "../names.js";
import { type Listed, Page } from "../pages.js";
import { Changes } from "../realtime.js";
import type { Transport } from "../transport.js";
import { masked, sleep, step } from "../utils.js";

const PATH = "/documents";
const CREATION = { isOncePerKey: true, answer: MADE } as const;
const READY_WITHIN = 300_000;
// Between two polls: growing by half, with up to a quarter more, so that many who wait spread out.
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 10_000;
// The shortest time limit of a poll, also of the last one, at the very end.
const SHORTEST_POLL = 1_000;

interface Ticket {
  readonly uploadUrl: string;
  readonly upload: string;
}

/** A `collectionId` may also be a name. */
export class DocumentsResource {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** A file; above 6 MB it goes to the project's storage. A stream is read into memory first. */
  async create(given: NewDocument, options?: UploadOptions): Promise<Document> {
    const params = await this.#resolved(given, options);
    const { content, name } = await fileOf(params.file, params.filename, params.contentType);
    if (content.size > MAX_REQUEST_BYTES) return this.#createLarge(params, content, name, options);
    const form = (): FormData => {
      const made = new FormData();
      made.set("collection_id", params.collectionId);
      if (params.metadata) made.set("metadata", JSON.stringify(params.metadata));
      if (params.private !== undefined) made.set("private", String(params.private));
      if (params.externalId !== undefined) made.set("external_id", params.externalId);
      made.set("file", content, name);
      return made;
    };
    const isRepeatable = params.externalId !== undefined;
    const call = { method: "POST", path: PATH, form, isRepeatable, ...CREATION } as const;
    return this.#transport.request(call, options);
  }

  /** Uploads the file to a signed URL of the project's storage, then adds it. */
  async #createLarge(params: NewDocument, content: Blob, name: string, options?: UploadOptions): Promise<Document> {
    const { file, filename, contentType, ...fields } = params;
    // By it the server recognizes the file of a repeated call with the same key.
    const contentHash = options?.idempotencyKey && (await hashOf(content));
    const json = { ...fields, filename: name, sizeBytes: content.size, contentHash };
    const begin = { method: "POST", path: `${PATH}/upload`, json, isRepeatable: true, answer: TICKET } as const;
    const { uploadUrl, upload } = await this.#transport.request<Ticket>(begin, { ...options, idempotencyKey: undefined });
    await this.#transport.put(uploadUrl, content, options);
    const add = { method: "POST", path: `${PATH}/uploaded`, json: { upload }, ...CREATION } as const;
    return this.#transport.request(add, options);
  }

  /** A page or a file of the public internet, fetched by the server. */
  async createFromUrl(params: NewDocumentFromUrl, options?: PostOptions): Promise<Document> {
    const json = await this.#resolved(params, options);
    const call = { method: "POST", path: `${PATH}/url`, json, ...CREATION } as const;
    return this.#transport.request(call, options);
  }

  async createFromText(params: NewDocumentFromText, options?: PostOptions): Promise<Document> {
    const json = await this.#resolved(params, options);
    const isRepeatable = params.externalId !== undefined;
    const path = `${PATH}/text`;
    const call = { method: "POST", path, json, isRepeatable, ...CREATION } as const;
    return this.#transport.request(call, options);
  }

  async list(given: ListDocuments, options?: RequestOptions): Promise<Page<Document>> {
    const params = await this.#resolved(given, options);
    const ask = (offset: number | undefined): Promise<Listed<Document>> =>
      this.#transport.request({ method: "GET", path: PATH, query: { ...params, offset }, answer: LISTED }, options);
    return Page.at(ask, params.offset);
  }

  async #resolved<T extends { collectionId: string }>(params: T, options: PostOptions | undefined): Promise<T> {
    return { ...params, collectionId: await idOf(this.#transport, "collection", params.collectionId, options) };
  }

  async get(documentId: string, options?: RequestOptions): Promise<Document> {
    return this.#transport.request(this.#read(documentId), options);
  }

  /** Its progress. */
  async status(documentId: string, options?: RequestOptions): Promise<DocumentProgress> {
    const path = `${PATH}/${step(documentId)}/status`;
    return this.#transport.request({ method: "GET", path, answer: PROGRESS }, options);
  }

  /** A link to the original, valid without a key for so many seconds (900 by default). */
  async url(documentId: string, options: RequestOptions & { expiresIn?: number } = {}): Promise<DocumentLink> {
    const { expiresIn, ...more } = options;
    const path = `${PATH}/${step(documentId)}/url`;
    return this.#transport.request({ method: "GET", path, query: { expiresIn }, answer: LINK }, more);
  }

  #read(documentId: string): Call {
    return { method: "GET", path: `${PATH}/${step(documentId)}`, answer: DOCUMENT };
  }

  async update(documentId: string, changes: DocumentChanges, options?: RequestOptions): Promise<Document> {
    const path = `${PATH}/${step(documentId)}`;
    return this.#transport.request({ method: "PATCH", path, json: changes, answer: MADE }, options);
  }

  async delete(documentId: string, options?: RequestOptions): Promise<void> {
    return this.#transport.request({ method: "DELETE", path: `${PATH}/${step(documentId)}` }, options);
  }

  /** The document when it is completed. Polls on after temporary failures of the server and of Realtime. */
  async waitUntilReady(documentId: string, options: WaitOptions = {}): Promise<Document> {
    const changes = new Changes(options.realtime);
    try {
      return await this.#ready(documentId, options, changes);
    } finally {
      changes.end();
    }
  }

  async #ready(documentId: string, options: WaitOptions, changes: Changes): Promise<Document> {
    const { timeout = READY_WITHIN, signal } = options;
    const end = Date.now() + timeout;
    let lastStatus: string | undefined;
    for (let interval = FIRST_PAUSE; ; interval = Math.min(LONGEST_PAUSE, interval * 1.5)) {
      let told = 0;
      // A change during this poll is followed by another poll.
      const change = changes.next();
      try {
        const timeLimit = Math.min(LONGEST_PAUSE, Math.max(SHORTEST_POLL, end - Date.now()));
        const how = { maxRetries: 0, signal, timeout: timeLimit };
        const { value: document, key } = await this.#transport.answer<Document>(this.#read(documentId), how);
        lastStatus = document.status;
        if (lastStatus === "completed") return document;
        if (lastStatus === "failed") {
          throw new DocumentFailedError(documentId, masked(document.error, key));
        }
        // The polls continue meanwhile.
        void changes.follow(document);
      } catch (raised) {
        if (!isPassing(raised)) throw raised;
        if (raised instanceof APIError) told = 1000 * (raised.retryAfter ?? 0);
      }
      const left = end - Date.now();
      if (left <= told) {
        const seen = lastStatus ? `it is still ${lastStatus}` : "it was never seen";
        const message = `Document ${documentId} was not ready within ${timeout} ms: ${seen}. Wait again, or raise timeout.`;
        throw new APITimeoutError(message, { lastStatus });
      }
      // (The last poll is at the very end.)
      const pause = changes.isLive ? LONGEST_PAUSE : interval * (1 + Math.random() / 4);
      await sleep(Math.min(left, Math.max(told, pause)), signal, told ? undefined : change);
    }
  }
}
