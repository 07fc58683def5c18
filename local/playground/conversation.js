// Questions and their answers, as they come: one session at a time.

import { confidence, sources, Text, timing } from "./answer.js";
import { byId, el, show } from "./dom.js";

export class Conversation {
  #api;
  #evidence;
  #on;
  #stopping = null;
  session = null;

  /** `on` is told: problem(problem), kept(session id). */
  constructor(api, evidence, on) {
    this.#api = api;
    this.#evidence = evidence;
    this.#on = on;
  }

  get isBusy() {
    return this.#stopping !== null;
  }

  stop() {
    this.#stopping?.abort();
  }

  /** A new session begins with the next question. */
  clear() {
    this.stop();
    this.session = null;
    show(byId("turns"), byId("empty"));
    byId("empty").hidden = false;
  }

  /** Whether anything was said. */
  async ask(question, looking) {
    const stopping = (this.#stopping = new AbortController());
    const turn = new Turn(question, this.#evidence);
    place(turn);
    this.#evidence.begin();
    const { mode, top_k, rerank, enable_graph, metadata_filter, document_type } = looking;
    const body = {
      message: question,
      session_id: this.session,
      collection_id: looking.collection_id,
      preset: looking.preset,
      reasoning_mode: looking.reasoning_mode,
      // One tier, as the results beside it.
      retrieval: { mode, top_k, rerank, enable_graph, metadata_filter, document_type, hierarchical: false },
    };
    try {
      for await (const message of this.#api.stream("/api/v1/chat", body, stopping.signal)) {
        // Once the passages are there: the search that shows them must not delay the answer.
        if (message.type === "sources" && !turn.hasSources) void this.#evidence.search(question, looking);
        turn.take(message);
      }
      this.session = turn.metadata.session_id ?? this.session;
      this.#on.kept(this.session);
      // A follow-up is looked for in other words.
      if (turn.metadata.search_query !== question) void this.#evidence.search(turn.metadata.search_query, looking);
    } catch (problem) {
      turn.fail(stopping.signal.aborted ? "Stopped." : problem.message);
      if (!stopping.signal.aborted) this.#on.problem(problem);
    } finally {
      turn.end();
      if (this.#stopping === stopping) this.#stopping = null;
    }
    return turn.hasText;
  }

  /** A session as it was kept. */
  open(session, messages) {
    this.clear();
    this.session = session;
    let turn = null;
    for (const message of messages) {
      if (message.role === "user") {
        turn = new Turn(message.content, this.#evidence);
        place(turn);
      } else if (turn) {
        turn.take({ type: "sources", sources: message.sources ?? [] });
        turn.take({ type: "delta", content: message.content });
      }
    }
    for (const each of byId("turns").querySelectorAll("[aria-busy]")) each.setAttribute("aria-busy", "false");
  }
}

function place(turn) {
  byId("empty").hidden = true;
  byId("turns").append(turn.element);
  turn.element.scrollIntoView({ block: "nearest" });
}

/** A question, and what comes of it. */
class Turn {
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
  metadata = null;

  constructor(question, evidence) {
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
        this.#step(`Looking for: ${message.query}`);
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
    const asked = metadata.is_follow_up && metadata.search_query;
    show(
      this.#foot,
      confidence(metadata.confidence, metadata.withheld),
      timing(metadata, this.#usage, this.#first ?? 0),
      asked && el("p", { class: "quiet", text: `Looked for as: ${metadata.search_query}` }),
      !metadata.kept && el("p", { class: "problem", text: "This turn could not be kept in its session." }),
    );
  }
}
