// A question, and what comes of it: passages, text, how sure it is.

import { confidence, sources, Text, timing } from "./answer.js";
import { el, show } from "./dom.js";

export class Turn {
  #text;
  #answer = el("div", { class: "answer", "aria-live": "polite", "aria-busy": "true" });
  #steps = el("ol", { class: "steps", hidden: true });
  #sources = el("ol", { class: "sources", "aria-label": "Sources" });
  #foot = el("footer");
  #found = [];
  #parts = 0;
  #usage = null;
  #asked = performance.now();
  #first = null;
  #feedback;
  metadata = null;

  /** `feedback` makes the buttons for a recorded answer, of its request id. */
  constructor(question, evidence, feedback) {
    this.#feedback = feedback;
    const open = (one, said = "") => {
      const source = this.#found[one - 1];
      if (source) void evidence.open(source.document_id, source.chunk_id, said);
    };
    this.#text = new Text(this.#answer, () => this.#found.length, open);
    this.open = open;
    performance.mark("asked");
    this.element = el(
      "article",
      { class: "turn" },
      el("h2", { class: "asked", text: question }),
      this.#steps,
      this.#answer,
      this.#sources,
      this.#foot,
    );
  }

  /** Whether passages have come. */
  get hasSources() {
    return this.#parts > 0;
  }

  get hasText() {
    return this.#first !== null;
  }

  take(message) {
    switch (message.type) {
      case "reasoning_step":
        this.#step(message.description);
        break;
      case "sub_query":
        this.#step(`Searching for: ${message.query}`);
        break;
      case "sources":
        // In deep reasoning each part has its own; those of all, which the numbers count, come last.
        this.#parts += 1;
        this.#show(message.sources);
        break;
      case "delta":
        this.#write(message.content);
        break;
      case "usage":
        this.#usage = message.usage;
        break;
      case "done":
        this.#finish(message);
        break;
    }
  }

  fail(text) {
    this.#foot.append(el("p", { class: "problem", role: "alert", text }));
  }

  end() {
    this.#text.end();
    this.#answer.setAttribute("aria-busy", "false");
    if (!this.metadata || this.metadata.withheld) return;
    const cited = new Set(Array.from(this.#answer.querySelectorAll(".pill"), (pill) => pill.textContent));
    for (const source of this.#sources.querySelectorAll(".source")) {
      if (cited.has(source.firstChild.textContent)) continue;
      source.classList.add("uncited");
      source.title = "The answer does not cite this source.";
    }
  }

  #step(text) {
    this.#steps.hidden = false;
    this.#steps.append(el("li", { text }));
  }

  #show(found) {
    this.#found = found;
    sources(this.#sources, found, this.open);
  }

  #write(text) {
    if (this.#first === null) {
      this.#first = performance.now() - this.#asked;
      performance.measure("first-token", "asked");
    }
    this.#text.add(text);
  }

  #finish({ metadata }) {
    this.metadata = metadata;
    if (metadata.withheld && this.#found.length) this.#sources.before(el("p", { class: "quiet", text: "The closest passages, with too little confidence for an answer:" }));
    const asked = metadata.is_follow_up && metadata.search_query;
    show(
      this.#foot,
      confidence(metadata.confidence_detail, metadata.withheld),
      timing(metadata, this.#usage, this.#first ?? 0),
      asked && el("p", { class: "quiet", text: `Searched for: ${metadata.search_query}` }),
      metadata.recorded && this.#feedback(metadata.request_id),
      !metadata.kept && el("p", { class: "problem", text: "This turn could not be saved in its session. Ask again to save it." }),
    );
  }
}
