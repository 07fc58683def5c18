// The documents of one collection or of all: listed in pages, searched by name, uploaded, deleted.

import { byId, count, el, list } from "./dom.js";
import { Uploads } from "./uploads.js";

const PAGE = 50;
// A page of documents from many small collections takes several requests.
const MAX_REQUESTS = 5;
// After the last letter of a search, in milliseconds.
const PAUSE = 300;

export class Documents {
  #api;
  #on;
  #uploads;
  #userId;
  #rows = [];
  #failed = [];
  #next = { sources: [], source: 0, offset: 0, name: "" };
  // The collection of the latest upload.
  #latest = null;

  /** `userId`: whose documents come first; none for an API key. `on` has: opened(id), changed(), deleted(id), listed(),
   * problem(problem), and target(): the id of the collection that files go to, or null. */
  constructor(api, userId, on) {
    this.#api = api;
    this.#userId = userId;
    this.#on = on;
    let waiting = null;
    byId("document-name").oninput = () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => this.show(this.#next.sources), PAUSE);
    };
    this.#uploads = new Uploads(api, Boolean(userId), on.problem);
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

  /** List the documents of these collections from the first on: the collection of the latest upload first. */
  async show(sources) {
    this.#rows = [];
    this.#failed = [];
    const [latest, others] = partition(sources, ({ id }) => id === this.#latest);
    this.#next = { sources: [...latest, ...others], source: 0, offset: 0, name: byId("document-name").value.trim() };
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

  /** The next page, the user's own documents first and the newest first, and where the page after it begins. */
  async #page({ sources, source, offset, name }) {
    const rows = [];
    for (let request = 0; request < MAX_REQUESTS && rows.length < PAGE && source < sources.length; request++) {
      const query = new URLSearchParams({ collection_id: sources[source].id, limit: PAGE - rows.length, offset });
      if (name) query.set("name", name);
      const { data, pagination } = await this.#api.get(`/api/v1/documents?${query}`);
      rows.push(...data);
      offset += data.length;
      if (!pagination.has_more || !data.length) [source, offset] = [source + 1, 0];
    }
    rows.sort((one, other) => Date.parse(other.created_at) - Date.parse(one.created_at));
    return [partition(rows, (row) => row.user_id === this.#userId).flat(), { sources, source, offset, name }];
  }

  /** Add the rows of a page to the list. */
  #show(rows) {
    const { sources, source, name } = this.#next;
    const names = new Map(sources.length > 1 ? sources.map((collection) => [collection.id, collection.name]) : []);
    // A failed upload has no text. A document whose update failed still has its earlier one.
    const [failed, documents] = partition(rows, (row) => row.status === "failed" && !row.chunk_count);
    const add = (place, before, added) => {
      const items = added.map((row) => this.#row(row, names.get(row.collection_id)));
      if (before.length) place.append(...items);
      else list(place, ...items);
      before.push(...added);
    };
    add(byId("documents"), this.#rows, documents);
    add(byId("failed"), this.#failed, failed);
    const isWhole = source >= sources.length;
    byId("failed-uploads").hidden = !this.#failed.length;
    const ofFailed = count(this.#failed.length, "failed upload") + (isWhole ? "" : " so far");
    byId("failed-count").textContent = ofFailed;
    byId("documents-count").textContent = sources.length ? this.#count(isWhole) + (this.#failed.length ? `, ${ofFailed}` : "") : "No collection yet: the first upload creates one.";
    byId("document-name").hidden = !name && !this.#rows.length;
    byId("more-documents").hidden = isWhole;
  }

  #count(isWhole) {
    const length = this.#rows.length;
    const { sources, name } = this.#next;
    if (name) return `${count(length, "document")} found${isWhole ? "" : " so far"}`;
    const total = sources.reduce((sum, collection) => sum + collection.document_count, 0) - this.#failed.length;
    return isWhole || total <= length ? count(length, "document") : `${length.toLocaleString("en")} of ${count(total, "document")}`;
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
      el("button", { type: "button", class: "plain", "aria-label": `Delete document: ${title}`, title: "Delete", text: "✕", onclick: () => this.#delete(row, title) }),
      row.status !== "completed" && el("p", { class: `detail ${row.status}`, text: state }),
      row.notes.length > 0 && el("p", { class: "detail", text: row.notes.join(" ") }),
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
      this.#latest = target;
      await Promise.all(files.map((file) => this.#uploads.bring(target, file)));
      this.#on.changed();
    } catch (problem) {
      this.#on.problem(problem);
    }
  }
}

/** The items that fulfil a condition, and the others. */
function partition(items, condition) {
  return [items.filter(condition), items.filter((item) => !condition(item))];
}
