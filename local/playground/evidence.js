// The evidence beside an answer: results, graph and the opened passage.

import { byId, el, show } from "./dom.js";
import { graph } from "./graph.js";
import { view } from "./page.js";
import { passage } from "./passage.js";
import { results } from "./results.js";

const TABS = [byId("tab-results"), byId("tab-graph"), byId("tab-passage")];

export class Evidence {
  #api;
  #onProblem;
  #nameOf;
  // Answers may overtake each other: the latest question's counts.
  #latest = 0;
  #opened = 0;
  // A passage that the user has opened since the question is not taken away.
  #isReading = false;
  // The id of the document whose passage is open.
  #document = null;
  // How far each tab is scrolled.
  #places = new Map();

  /** `onProblem` is called with problems; `nameOf` is the name of a collection. */
  constructor(api, onProblem, nameOf) {
    this.#api = api;
    this.#onProblem = onProblem;
    this.#nameOf = nameOf;
    for (const tab of TABS) {
      tab.onclick = () => this.#choose(tab);
      tab.onkeydown = (pressed) => this.#step(tab, pressed);
    }
  }

  /** A question is asked. */
  begin() {
    this.#isReading = false;
  }

  /** Search, and show results and graph. */
  async search(question, looking) {
    const turn = ++this.#latest;
    const asked = {
      // The longest that a search takes; a conversation takes more.
      query: Array.from(question).slice(0, 1000).join(""),
      mode: looking.mode,
      top_k: looking.top_k,
      collection_id: looking.collection_id,
      document_type: looking.document_type,
      rerank: looking.rerank,
      enable_graph: looking.enable_graph && looking.mode !== "graph",
      metadata_filter: looking.metadata_filter,
    };
    try {
      const answer = await this.#api.post("/api/v1/retrievals", asked);
      if (turn !== this.#latest) return;
      const collections = new Set(answer.results.map((result) => result.collection_id));
      results(byId("results"), answer, (result) => this.open(result.document_id, result.chunk_id), this.#nameOf);
      graph(byId("graph-view"), answer, (chunk) => this.#openChunk(chunk, collections));
      if (!this.#isReading) this.#choose(TABS[0], { focus: false, isNew: true });
      this.#places.clear();
    } catch (problem) {
      if (turn !== this.#latest) return;
      show(byId("results"), el("p", { class: "problem", text: problem.message }));
      show(byId("graph-view"));
      this.#onProblem(problem);
    }
  }

  /** A document, with one of its chunks highlighted, or what an answer quotes of it. */
  async open(documentId, chunkId = null, said = "") {
    const turn = ++this.#opened;
    this.#isReading = true;
    this.#document = documentId;
    view("evidence");
    this.#choose(TABS[2], { focus: false, isNew: true });
    show(byId("passage"), el("p", { class: "quiet", text: "Opening …" }));
    try {
      const fill = await passage(this.#api, documentId, chunkId, said, this.#nameOf);
      if (turn === this.#opened) fill(byId("passage"));
    } catch (problem) {
      if (turn !== this.#opened) return;
      show(byId("passage"), el("p", { class: "problem", text: problem.message }));
      this.#onProblem(problem);
    }
  }

  /** The document is deleted: its passage is not shown any longer. */
  close(documentId) {
    if (documentId !== this.#document) return;
    this.#opened += 1;
    show(byId("passage"), el("p", { class: "quiet", text: "This document was deleted." }));
  }

  clear() {
    this.#latest += 1;
    this.#opened += 1;
    this.#document = null;
    show(byId("results"), el("p", { class: "quiet", text: "The results of a question appear here." }));
    show(byId("graph-view"), el("p", { class: "quiet", text: "The graph of the names in a question appears here." }));
    show(byId("passage"), el("p", { class: "quiet", text: "A cited passage appears here, in its document." }));
    this.#choose(TABS[0], { focus: false });
  }

  /** The graph names chunks alone: their document is found in one of the collections. */
  async #openChunk(chunkId, collections) {
    try {
      for (const collection of collections) {
        const workspace = { "X-Workspace-Id": `ws_${collection}` };
        const { chunks } = await this.#api.post("/v1/contents", { ids: [{ kind: "chunk", id: `chnk_${chunkId}` }] }, workspace);
        if (chunks.length) {
          await this.open(chunks[0].documentId.replace(/^doc_/, ""), chunkId);
          return;
        }
      }
    } catch (problem) {
      this.#onProblem(problem);
      return;
    }
    show(byId("passage"), el("p", { class: "problem", text: "This passage was changed or deleted. Ask again." }));
    this.#choose(TABS[2]);
  }

  #choose(chosen, { focus = true, isNew = false } = {}) {
    const panel = byId("evidence");
    this.#places.set(TABS.find((tab) => tab.tabIndex === 0), panel.scrollTop);
    for (const tab of TABS) {
      const isChosen = tab === chosen;
      tab.setAttribute("aria-selected", String(isChosen));
      tab.tabIndex = isChosen ? 0 : -1;
      byId(tab.getAttribute("aria-controls")).hidden = !isChosen;
    }
    panel.scrollTop = isNew ? 0 : (this.#places.get(chosen) ?? 0);
    panel.dataset.isNew = String(isNew && !panel.clientHeight);
    if (focus) chosen.focus();
  }

  #step(tab, pressed) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[pressed.key];
    if (!step) return;
    pressed.preventDefault();
    this.#choose(TABS[(TABS.indexOf(tab) + step + TABS.length) % TABS.length]);
  }
}
