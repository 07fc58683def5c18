// The documents of one collection or of all: listed in pages, uploaded, deleted.

import { byId, count, el, list } from "./dom.js";
import { Uploads } from "./uploads.js";

const PAGE = 50;
// A page of documents from many small collections takes several requests.
const MAX_REQUESTS = 5;

export class Documents {
  #api;
  #on;
  #uploads;
  #rows = [];
  #next = { sources: [], source: 0, offset: 0 };

  /** `on` has: opened(id), changed(), deleted(id), listed(), problem(problem), and target(): the id of the collection that
   * files go to, or null. */
  constructor(api, on) {
    this.#api = api;
    this.#on = on;
    this.#uploads = new Uploads(api, on.problem);
    byId("more-documents").onclick = () => this.#more();
    byId("files").onchange = ({ target }) => {
      void this.#upload([...target.files]);
      target.value = "";
    };
    const drop = byId("drop");
    drop.ondragover = (event) => event.preventDefault();
    drop.ondrop = (event) => {
      event.preventDefault();
      void this.#upload([...event.dataTransfer.files]);
    };
  }

  /** The titles of the documents that are listed and can be found. */
  get titles() {
    return this.#rows.filter((row) => row.status === "completed").map((row) => row.title);
  }

  /** List the documents of these collections from the first on. */
  async show(sources) {
    this.#rows = [];
    this.#next = { sources, source: 0, offset: 0 };
    await this.#more();
  }

  async #more() {
    // Responses may overtake each other: that of an earlier choice is dropped.
    const next = this.#next;
    byId("more-documents").disabled = true;
    try {
      const [rows, after] = await this.#page(next);
      if (next !== this.#next) return;
      this.#next = after;
      this.#show(rows);
      this.#on.listed();
    } catch (problem) {
      this.#on.problem(problem);
    } finally {
      byId("more-documents").disabled = false;
    }
  }

  /** The next page, and where the one after it begins. */
  async #page({ sources, source, offset }) {
    const rows = [];
    for (let request = 0; request < MAX_REQUESTS && rows.length < PAGE && source < sources.length; request++) {
      const query = `collection_id=${sources[source].id}&limit=${PAGE - rows.length}&offset=${offset}`;
      const { data, pagination } = await this.#api.get(`/api/v1/documents?${query}`);
      rows.push(...data);
      offset += data.length;
      if (!pagination.has_more || !data.length) [source, offset] = [source + 1, 0];
    }
    return [rows, { sources, source, offset }];
  }

  /** Add the rows of a page to the list. */
  #show(rows) {
    const { sources, source } = this.#next;
    const names = new Map(sources.length > 1 ? sources.map(({ id, name }) => [id, name]) : []);
    const items = rows.map((row) => this.#row(row, names.get(row.collection_id)));
    if (this.#rows.length) byId("documents").append(...items);
    else list(byId("documents"), ...items);
    this.#rows.push(...rows);
    const length = this.#rows.length;
    const total = sources.reduce((sum, collection) => sum + collection.document_count, 0);
    const text = total > length ? `${length.toLocaleString("en")} of ${count(total, "document")}` : count(length, "document");
    byId("documents-count").textContent = sources.length ? text : "No collection yet: the first upload creates one.";
    byId("more-documents").hidden = source >= sources.length;
  }

  #row(row, collection) {
    const title = row.title || row.filename || "Untitled";
    const state = row.status === "failed" ? `failed: ${row.error?.message ?? "no reason is known"}` : (row.error?.message ?? row.status);
    return el(
      "li",
      {},
      el(
        "button",
        { type: "button", class: "choice", "data-id": row.id, onclick: () => this.#on.opened(row.id) },
        el("span", { text: title }),
        collection && el("span", { class: "quiet", text: collection }),
      ),
      el("button", { type: "button", class: "plain", "aria-label": `Delete document: ${title}`, text: "✕", onclick: () => this.#delete(row, title) }),
      row.status !== "completed" && el("p", { class: `detail ${row.status}`, text: state }),
    );
  }

  async #delete(row, title) {
    if (!confirm(`Delete the document “${title}”? This cannot be undone.`)) return;
    try {
      await this.#api.delete(`/api/v1/documents/${row.id}`);
      this.#on.deleted(row.id);
      this.#on.changed();
    } catch (problem) {
      this.#on.problem(problem);
    }
  }

  async #upload(files) {
    if (!files.length) return;
    try {
      const target = await this.#on.target();
      if (!target) return;
      await Promise.all(files.map((file) => this.#uploads.bring(target, file)));
      this.#on.changed();
    } catch (problem) {
      this.#on.problem(problem);
    }
  }
}
