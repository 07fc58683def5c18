// The client: its settings and resources.

import type { ApiKey, RequestOptions } from "./calls.js";
import { MnemosyneError, UnexpectedResponseError } from "./errors.js";
import { ITEMS, LISTED, STATS } from "./forms.js";
import type { AuditEvent, Health, ListEvents, Org, Stats } from "./models/administration.js";
import { type Listed, Page } from "./pages.js";
import { ChatResource } from "./resources/chat.js";
import { CollectionsResource } from "./resources/collections.js";
import { DocumentsResource } from "./resources/documents.js";
import { RagResource } from "./resources/rag.js";
import { RecordsResource } from "./resources/records.js";
import { RetrievalsResource } from "./resources/retrievals.js";
import { SearchResource } from "./resources/search.js";
import { Transport } from "./transport.js";
import { fromEnvironment } from "./utils.js";

// The local stack's address: without a configured one a key is sent to this machine only.
const LOCAL = "http://127.0.0.1:54321/api/v1";
const RETRIES = 2;

export interface ClientOptions {
  /** An API key or a user's JWT, or a function that returns one before each attempt; by default MNEMOSYNE_API_KEY. */
  apiKey?: ApiKey | undefined;
  /** The address with /api/v1 or /v1; by default MNEMOSYNE_BASE_URL, else the local stack's. */
  baseUrl?: string | undefined;
  /** Milliseconds for an attempt; 60,000, and 180,000 for a whole answer of the chat. */
  timeout?: number | undefined;
  /** How often a failed call may be repeated; 2. */
  maxRetries?: number | undefined;
  /** Replaces the platform's fetch. */
  fetch?: typeof globalThis.fetch | undefined;
}

export class Mnemosyne {
  readonly collections: CollectionsResource;
  readonly documents: DocumentsResource;
  readonly retrievals: RetrievalsResource;
  readonly chat: ChatResource;
  readonly search: SearchResource;
  readonly rag: RagResource;
  readonly records: RecordsResource;
  readonly #transport: Transport;

  constructor(options: ClientOptions = {}) {
    const apiKey = options.apiKey ?? fromEnvironment("MNEMOSYNE_API_KEY");
    if (!apiKey) throw new MnemosyneError("An API key is needed: pass apiKey, or set MNEMOSYNE_API_KEY.");
    const given = options.fetch;
    this.#transport = new Transport({
      apiKey,
      baseUrl: address(options.baseUrl ?? fromEnvironment("MNEMOSYNE_BASE_URL") ?? LOCAL),
      timeout: options.timeout,
      maxRetries: options.maxRetries ?? RETRIES,
      // Called by its own name: a browser's refuses another `this`.
      fetch: (input, init) => (given ? given(input, init) : globalThis.fetch(input, init)),
    });
    this.collections = new CollectionsResource(this.#transport);
    this.documents = new DocumentsResource(this.#transport);
    this.retrievals = new RetrievalsResource(this.#transport);
    this.chat = new ChatResource(this.#transport);
    this.search = new SearchResource(this.#transport);
    this.rag = new RagResource(this.#transport);
    this.records = new RecordsResource(this.#transport);
  }

  /** Never repeated. An unhealthy state is a result, not an error. */
  async health(options: RequestOptions = {}): Promise<Health> {
    const call = { method: "GET", path: "/health", accepts: 503 } as const;
    const health = await this.#transport.request<Health>(call, { ...options, maxRetries: 0 });
    // Something before the deployment may answer for it, in its own form.
    if (typeof health?.services !== "object" || health.services === null) {
      throw new UnexpectedResponseError("The response is not a health report. Check baseUrl.");
    }
    return health;
  }

  /** Of the orgs that the caller administers. */
  stats(options?: RequestOptions): Promise<Stats> {
    return this.#transport.request({ method: "GET", path: "/stats", answer: STATS }, options);
  }

  /** The caller's orgs, by name; of a key its one org. */
  async orgs(options?: RequestOptions): Promise<readonly Org[]> {
    const call = { method: "GET", path: "/orgs", answer: ITEMS } as const;
    return (await this.#transport.request<{ data: readonly Org[] }>(call, options)).data;
  }

  /** Audit events of the orgs that the caller administers, the latest first. */
  events(params: ListEvents = {}, options?: RequestOptions): Promise<Page<AuditEvent>> {
    const ask = (offset: number | undefined): Promise<Listed<AuditEvent>> =>
      this.#transport.request(
        { method: "GET", path: "/events", query: { ...params, offset }, answer: LISTED },
        options,
      );
    return Page.at(ask, params.offset);
  }
}

function address(given: string): string {
  let url: URL;
  try {
    url = new URL(given);
  } catch {
    throw new MnemosyneError("baseUrl must be an absolute URL.");
  }
  if (!["http:", "https:"].includes(url.protocol)) throw new MnemosyneError("baseUrl must be http or https.");
  if (url.username || url.password || url.search || url.hash) {
    throw new MnemosyneError("baseUrl must be without a user, a query and a fragment.");
  }
  return url.href.replace(/\/+$/, "");
}
