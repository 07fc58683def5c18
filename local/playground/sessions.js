// The user's own conversations: listed, opened again, deleted.

import { byId, el, list } from "./dom.js";

const PAGE = 8;

export class Sessions {
  #api;
  #on;
  #rows = [];
  #chosen = null;
  // Answers may overtake each other: the latest's counts.
  #turn = 0;
  #opening = 0;

  /** `on` is told: opened(session, messages), deleted(session id), problem(problem). */
  constructor(api, on) {
    this.#api = api;
    this.#on = on;
    byId("more-sessions").onclick = () => this.#more(this.#rows);
  }

  /** The first page again, with the one that is open marked. */
  async load(chosen = this.#chosen) {
    this.#chosen = chosen;
    await this.#more([]);
  }

  async #more(before) {
    const turn = ++this.#turn;
    byId("more-sessions").disabled = true;
    try {
      const rows = await this.#api.get(`/api/v1/chat/sessions?limit=${PAGE}&offset=${before.length}`);
      if (turn !== this.#turn) return;
      this.#rows = [...before, ...rows];
      byId("more-sessions").hidden = rows.length < PAGE;
      this.#show();
    } catch (problem) {
      this.#on.problem(problem);
    } finally {
      byId("more-sessions").disabled = false;
    }
  }

  #show() {
    const items = this.#rows.map((row) => this.#row(row));
    list(byId("sessions"), ...(items.length ? items : [el("li", { class: "quiet", text: "No sessions yet." })]));
  }

  #row(row) {
    const title = row.title || "Untitled";
    return el(
      "li",
      {},
      el("button", {
        type: "button",
        class: "choice",
        "data-id": row.id,
        "aria-current": row.id === this.#chosen && "true",
        text: title,
        onclick: () => this.#open(row),
      }),
      el("button", { type: "button", class: "plain", "aria-label": `Delete session: ${title}`, title: "Delete", text: "✕", onclick: () => this.#delete(row) }),
    );
  }

  async #open(row) {
    const turn = ++this.#opening;
    try {
      const messages = await this.#api.get(`/api/v1/chat/sessions/${row.id}/messages`);
      if (turn !== this.#opening) return;
      this.#chosen = row.id;
      this.#show();
      this.#on.opened(row, messages);
    } catch (problem) {
      this.#on.problem(problem);
    }
  }

  async #delete(row) {
    if (!confirm(`Delete the session “${row.title}”?`)) return;
    try {
      await this.#api.delete(`/api/v1/chat/sessions/${row.id}`);
      this.#on.deleted(row.id);
      await this.load();
    } catch (problem) {
      this.#on.problem(problem);
    }
  }
}
