// Files on their way: sent, and watched while they are worked on.

import { byId, count, el } from "./dom.js";

// Until the next look at a document that is worked on, in milliseconds: longer each time.
const PAUSES = [500, 700, 1000, 1500, 2000, 3000];
const ENDED = new Set(["completed", "failed"]);

export class Uploads {
  #api;
  #told;

  /** `told` is told of problems that are not one file's. */
  constructor(api, told) {
    this.#api = api;
    this.#told = told;
  }

  /** One file, with its state as it changes. */
  async bring(collectionId, file) {
    const state = el("span", { class: "tag", text: "sending" });
    byId("uploads").append(el("li", {}, el("span", { text: file.name }), state));
    const say = (text, kind = "") => {
      state.textContent = text;
      state.className = `tag ${kind}`;
    };
    try {
      const form = new FormData();
      form.append("collection_id", collectionId);
      form.append("file", file);
      const { id } = await this.#api.post("/api/v1/documents", form);
      const ended = await this.#watch(id, say);
      if (ended.status === "failed") say(ended.error?.message ?? "failed", "failed");
      else say(`ready: ${count(ended.chunk_count, "chunk")}`, "completed");
    } catch (problem) {
      say(problem.message, "failed");
      if (problem.isExpired) this.#told(problem);
    }
  }

  async #watch(id, say) {
    for (let look = 0; ; look++) {
      try {
        const now = await this.#api.get(`/api/v1/documents/${id}/status`);
        if (ENDED.has(now.status)) return now;
        say(now.step ?? (now.error ? `waiting to try again: ${now.error.message}` : "waiting"));
      } catch (problem) {
        // A server that is gone comes back, a limit passes, and whoever has to sign in again does.
        if (problem.isExpired) this.#told(problem);
        else if (!problem.isPassing) throw problem;
        say(problem.message);
      }
      await new Promise((resolve) => setTimeout(resolve, PAUSES[Math.min(look, PAUSES.length - 1)]));
    }
  }
}
