// Questions and their answers, as they come: one session at a time.

import { byId, show } from "./dom.js";
import { feedback } from "./feedback.js";
import { Follower } from "./follower.js";
import { Turn } from "./turn.js";

export class Conversation {
  #api;
  #evidence;
  #on;
  #stopping = null;
  #follower = new Follower(byId("turns"));
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
    const turn = this.#place(question);
    this.#follower.start();
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
        this.#follower.follow();
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
      this.#follower.follow();
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
        turn = this.#place(message.content);
      } else if (turn) {
        turn.take({ type: "sources", sources: message.sources ?? [] });
        turn.take({ type: "delta", content: message.content });
      }
      turn?.end();
    }
    this.#follower.start();
  }

  #place(question) {
    const turn = new Turn(question, this.#evidence, (id) => {
      const path = `/api/v1/records/${encodeURIComponent(id)}/feedback`;
      return feedback((rating, reason) => this.#api.post(path, { rating, reason }), this.#on.problem);
    });
    byId("empty").hidden = true;
    byId("turns").append(turn.element);
    return turn;
  }
}
