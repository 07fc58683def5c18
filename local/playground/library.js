// Collections and their documents: chosen, made, uploaded to, and watched while they are worked on.

import { byId, count, el, show } from "./dom.js";

const PAGE = 50;
// Until the next look at a document that is worked on, in milliseconds: longer each time.
const PAUSES = [500, 700, 1000, 1500, 2000, 3000];
const ENDED = new Set(["completed", "failed"]);

export class Library {
  #api;
  #on;
  #collections = [];
  #documents = [];
  #chosen = null;
  // Answers may overtake each other: those of another choice are passed over.
  #turn = 0;

  /** `on` is told: chosen(collection or null), opened(document id), problem(problem). */
  constructor(api, on) {
    this.#api = api;
    this.#on = on;
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
  async load() {
    try {
      const rows = [];
      let page;
      do {
        page = await this.#api.get(`/api/v1/collections?limit=100&offset=${rows.length}&sort_by=name&order=asc`);
        rows.push(...page.data);
      } while (page.pagination.has_more && page.data.length);
      this.#collections = rows;
      await this.#choose(rows.find((row) => row.id === this.#chosen?.id) ?? null);
    } catch (problem) {
      this.#on.problem(problem);
    }
  }

  get isEmpty() {
    return this.#collections.every((row) => row.document_count === 0);
  }

  async #choose(collection) {
    const changed = collection?.id !== this.#chosen?.id;
    this.#chosen = collection;
    const all = { id: null, name: "All collections", document_count: this.#collections.reduce((sum, row) => sum + row.document_count, 0) };
    show(byId("collections"), ...[all, ...this.#collections].map((row) => this.#choice(row)));
    this.#on.chosen(collection, changed);
    this.#documents = [];
    byId("documents-section").hidden = collection === null && this.#collections.length > 0 && this.#collections.length !== 1;
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
        { type: "button", class: "choice", "aria-current": row.id === (this.#chosen?.id ?? null) && "true", onclick: () => this.#choose(row.id ? row : null) },
        el("span", { text: row.name }),
        el("span", { class: "quiet", text: row.document_count.toLocaleString("en") }),
      ),
    );
  }

  async #create(submitted) {
    submitted.preventDefault();
    try {
      this.#chosen = await this.#api.post("/api/v1/collections", { name: byId("collection-name").value });
      submitted.target.reset();
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
    try {
      const query = `collection_id=${collection.id}&limit=${PAGE}&offset=${this.#documents.length}`;
      const page = await this.#api.get(`/api/v1/documents?${query}`);
      if (turn !== this.#turn) return;
      this.#documents.push(...page.data);
      byId("documents").append(...(this.#documents.length === page.data.length ? (show(byId("documents")), page.data) : page.data).map((row) => this.#row(row)));
      byId("documents-count").textContent =
        page.pagination.total > this.#documents.length
          ? `${this.#documents.length.toLocaleString("en")} of ${count(page.pagination.total, "document")}`
          : count(page.pagination.total, "document");
      byId("more-documents").hidden = !page.pagination.has_more;
    } catch (problem) {
      this.#on.problem(problem);
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
    if (!files.length) return;
    try {
      const target = this.#target ?? (this.#collections.length ? null : await this.#api.post("/api/v1/collections", { name: "documents" }));
      if (!target) {
        this.#on.problem(new Error("Choose the collection that the files go to."));
        return;
      }
      await Promise.all(files.map((file) => this.#bring(target, file)));
      await this.load();
    } catch (problem) {
      this.#on.problem(problem);
    }
  }

  /** One file, with its state as it changes. */
  async #bring(target, file) {
    const state = el("span", { class: "tag", text: "sending" });
    byId("uploads").append(el("li", {}, el("span", { text: file.name }), state));
    const say = (text, kind = "") => {
      state.textContent = text;
      state.className = `tag ${kind}`;
    };
    try {
      const form = new FormData();
      form.append("collection_id", target.id);
      form.append("file", file);
      const { id } = await this.#api.post("/api/v1/documents", form);
      const ended = await this.#watch(id, say);
      if (ended.status === "failed") say(ended.error?.message ?? "failed", "failed");
      else say(`ready: ${count(ended.chunk_count, "chunk")}`, "completed");
    } catch (problem) {
      say(problem.message, "failed");
      if (problem.isExpired) this.#on.problem(problem);
    }
  }

  async #watch(id, say) {
    for (let look = 0; ; look++) {
      try {
        const now = await this.#api.get(`/api/v1/documents/${id}/status`);
        if (ENDED.has(now.status)) return now;
        say(now.step ?? (now.error ? `waiting to try again: ${now.error.message}` : "waiting"));
      } catch (problem) {
        // A server that is gone comes back.
        if (!problem.isUnreachable) throw problem;
        say("the server does not answer");
      }
      await new Promise((resolve) => setTimeout(resolve, PAUSES[Math.min(look, PAUSES.length - 1)]));
    }
  }
}
