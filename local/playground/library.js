// Collections and their documents: chosen, made, and uploaded to.

import { byId, count, el, list, show } from "./dom.js";
import { Uploads } from "./uploads.js";

const PAGE = 50;

export class Library {
  #api;
  #on;
  #uploads;
  #collections = [];
  // Until they are known nothing is brought: it might go elsewhere.
  #known = null;
  #documents = [];
  #chosen = null;
  // Answers may overtake each other: those of another choice are passed over.
  #turn = 0;

  /** `on` is told: chosen(collection or null), opened(document id), problem(problem). */
  constructor(api, on) {
    this.#api = api;
    this.#on = on;
    this.#uploads = new Uploads(api, (problem) => on.problem(problem));
    byId("more-documents").onclick = () => this.#more(this.#turn);
    byId("new-collection").onsubmit = (submitted) => this.#create(submitted);
    byId("files").onchange = ({ target }) => {
      this.#upload([...target.files]);
      target.value = "";
    };
    const drop = byId("drop");
    drop.ondragover = (dragged) => dragged.preventDefault();
    drop.ondrop = (dropped) => {
      dropped.preventDefault();
      this.#upload([...dropped.dataTransfer.files]);
    };
  }

  /** The collections, all pages of them; then the documents of the one that is chosen. */
  load() {
    this.#known = this.#load();
    return this.#known;
  }

  /** Whether that went well. */
  async #load() {
    try {
      const rows = [];
      let page;
      do {
        page = await this.#api.get(`/api/v1/collections?limit=100&offset=${rows.length}&sort_by=name&order=asc`);
        rows.push(...page.data);
      } while (page.pagination.has_more && page.data.length);
      this.#collections = rows;
      await this.#choose(rows.find((row) => row.id === this.#chosen?.id) ?? this.#first);
      return true;
    } catch (problem) {
      this.#on.problem(problem);
      return false;
    }
  }

  /** The one that a session is about, which is open by now. */
  choose(collectionId) {
    const found = this.#collections.find((row) => row.id === collectionId) ?? null;
    void this.#choose(found, { changed: false });
  }

  get isEmpty() {
    return this.#collections.every((row) => row.document_count === 0);
  }

  /** A question is of one org: whoever belongs to several chooses a collection. */
  get #orgs() {
    return new Set(this.#collections.map((row) => row.org_id));
  }

  get #first() {
    return this.#orgs.size > 1 ? this.#collections[0] : null;
  }

  async #choose(collection, { changed = collection?.id !== this.#chosen?.id } = {}) {
    this.#chosen = collection;
    const all = { id: null, name: "All collections", document_count: this.#collections.reduce((sum, row) => sum + row.document_count, 0) };
    const choices = this.#orgs.size > 1 ? this.#collections : [all, ...this.#collections];
    list(byId("collections"), ...choices.map((row) => this.#choice(row)));
    this.#on.chosen(collection, changed);
    this.#documents = [];
    byId("documents-section").hidden = this.#target === null && this.#collections.length > 0;
    await this.#more(++this.#turn);
  }

  /** Where files go, and whose documents are listed: the chosen one, or the only one. */
  get #target() {
    return this.#chosen ?? (this.#collections.length === 1 ? this.#collections[0] : null);
  }

  #choice(row) {
    return el(
      "li",
      {},
      el(
        "button",
        {
          type: "button",
          class: "choice",
          "data-id": row.id ?? "all",
          "aria-current": row.id === (this.#chosen?.id ?? null) && "true",
          onclick: () => this.#choose(row.id ? row : null),
        },
        el("span", {}, row.name, this.#orgs.size > 1 && el("span", { class: "quiet", text: ` of org ${row.org_id.slice(-4)}` })),
        el("span", { class: "quiet", text: row.document_count.toLocaleString("en") }),
      ),
    );
  }

  async #create(submitted) {
    submitted.preventDefault();
    try {
      const made = await this.#api.post("/api/v1/collections", { name: byId("collection-name").value });
      submitted.target.reset();
      this.#collections.push(made);
      await this.#choose(made);
      await this.load();
    } catch (problem) {
      this.#on.problem(problem);
    }
  }

  async #more(turn) {
    const collection = this.#target;
    if (!collection) {
      show(byId("documents"));
      byId("documents-count").textContent = this.#collections.length ? "" : "No collection yet: the first upload makes one.";
      byId("more-documents").hidden = true;
      return;
    }
    byId("more-documents").disabled = true;
    try {
      const query = `collection_id=${collection.id}&limit=${PAGE}&offset=${this.#documents.length}`;
      const page = await this.#api.get(`/api/v1/documents?${query}`);
      if (turn !== this.#turn) return;
      if (!this.#documents.length) show(byId("documents"));
      this.#documents.push(...page.data);
      byId("documents").append(...page.data.map((row) => this.#row(row)));
      byId("documents-count").textContent =
        page.pagination.total > this.#documents.length
          ? `${this.#documents.length.toLocaleString("en")} of ${count(page.pagination.total, "document")}`
          : count(page.pagination.total, "document");
      byId("more-documents").hidden = !page.pagination.has_more;
    } catch (problem) {
      this.#on.problem(problem);
    } finally {
      byId("more-documents").disabled = false;
    }
  }

  #row(row) {
    return el(
      "li",
      {},
      el("button", { type: "button", class: "choice", text: row.title || row.filename || "Untitled", onclick: () => this.#on.opened(row.id) }),
      row.status !== "completed" && el("span", { class: `tag ${row.status}`, text: row.error?.message ?? row.status }),
    );
  }

  async #upload(files) {
    if (!files.length || !(await this.#known)) return;
    try {
      const target = this.#target ?? (this.#collections.length ? null : await this.#api.post("/api/v1/collections", { name: "documents" }));
      if (!target) {
        this.#on.problem(new Error("Choose the collection that the files go to."));
        return;
      }
      await Promise.all(files.map((file) => this.#uploads.bring(target.id, file)));
      await this.load();
    } catch (problem) {
      this.#on.problem(problem);
    }
  }
}
