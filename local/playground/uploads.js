// Uploads of files, and the state of each until its document is processed.

import { byId, count, el } from "./dom.js";
import { Changes } from "./realtime.js";

// Until the next poll of a document that is processed, in milliseconds: longer each time.
const PAUSES = [500, 700, 1000, 1500, 2000, 3000];
const ENDED = new Set(["completed", "failed"]);

export class Uploads {
  #api;
  #changes;
  #onProblem;

  /** `onProblem` is called with problems that are not one file's. */
  constructor(api, isUser, onProblem) {
    this.#api = api;
    this.#changes = new Changes(api, isUser);
    this.#onProblem = onProblem;
  }

  /** Upload one file, and show its state as it changes. */
  async bring(collectionId, file) {
    const state = el("span", { class: "tag", text: "sending" });
    const detail = el("p", { class: "detail", hidden: true });
    byId("uploads").append(el("li", {}, el("span", { class: "name", text: file.name }), state, detail));
    const show = (text, kind = "", message = "") => {
      state.textContent = text;
      state.className = `tag ${kind}`;
      detail.textContent = message;
      detail.className = `detail ${kind}`;
      detail.hidden = !message;
    };
    try {
      const form = new FormData();
      form.append("collection_id", collectionId);
      form.append("file", file);
      const document = await this.#api.post("/api/v1/documents", form);
      this.#changes.watch(document);
      const ended = await this.#watch(document.id, show).finally(() => this.#changes.unwatch(document.id));
      if (ended.status === "failed") show("failed", "failed", ended.error?.message);
      else show(`ready: ${count(ended.chunk_count, "chunk")}`, "completed", ended.notes.join(" "));
    } catch (problem) {
      show("failed", "failed", problem.message);
      if (problem.isExpired) this.#onProblem(problem);
    }
  }

  async #watch(id, show) {
    for (let poll = 0; ; poll++) {
      try {
        const now = await this.#api.get(`/api/v1/documents/${id}/status`);
        if (ENDED.has(now.status)) return now;
        if (now.error) show("waiting to try again", "", now.error.message);
        else show(now.step ?? "waiting");
      } catch (problem) {
        // The server comes back, a limit passes, and the user signs in again.
        if (problem.isExpired) this.#onProblem(problem);
        else if (!problem.isPassing) throw problem;
        show("waiting", "", problem.message);
      }
      await this.#changes.pause(id, PAUSES[Math.min(poll, PAUSES.length - 1)]);
    }
  }
}
