// The frame of the administration: the navigation, the title of a page, its results and its problems.

import { byId, el, show } from "../dom.js";
import { PAGES } from "./pages.js";

export class Frame {
  #context;
  #place = el("div", { class: "content" });
  #message = el("p", { class: "message", role: "status", hidden: true });
  // Of pages that are opened one after another, the latest counts.
  #opened = 0;

  constructor(api, { who, orgs, expired }) {
    const several = orgs.length > 1;
    this.#context = {
      api,
      who,
      orgs,
      nameOf: (id) => orgs.find((org) => org.id === id)?.name ?? id.slice(0, 8),
      severalOrgs: several,
      say: (text) => this.#say(text),
      attempt: (action) => this.#attempt(action, expired),
    };
  }

  /** Show a page; the first one for an unknown id. */
  async show(id, parameters) {
    const page = PAGES.find((one) => one.id === id) ?? PAGES[0];
    const opened = ++this.#opened;
    const heading = el("h2", { tabindex: "-1", text: page.title });
    const place = (this.#place = el("div", { class: "content" }, el("p", { class: "quiet", text: "Loading …" })));
    show(byId("admin"), navigation(page), el("section", { class: "panel page", "aria-label": page.title }, heading, this.#message, place));
    heading.focus({ preventScroll: true });
    await this.#context.attempt(async () => {
      try {
        const { show: fill } = await page.load();
        const filled = el("div", { class: "content" });
        await fill(filled, { ...this.#context, parameters });
        if (opened === this.#opened) place.replaceWith((this.#place = filled));
      } catch (problem) {
        if (opened !== this.#opened) return;
        show(place, el("button", { type: "button", text: "Try again", onclick: () => this.show(id, parameters) }));
        throw problem;
      }
    });
  }

  #say(text, kind = "") {
    this.#message.textContent = text;
    this.#message.className = `message ${kind}`;
    this.#message.hidden = !text;
  }

  /** Run an action, and show its problem; whether it succeeded. */
  async #attempt(action, expired) {
    const opened = this.#opened;
    this.#say("");
    try {
      await action();
      return true;
    } catch (problem) {
      if (problem.isExpired) expired();
      if (opened === this.#opened) this.#say(problem.message, "problem");
      return false;
    } finally {
      // The control that had the focus may be gone.
      if (opened === this.#opened && document.activeElement === document.body) byId("admin").querySelector("h2")?.focus({ preventScroll: true });
    }
  }
}

function navigation(current) {
  const links = PAGES.map(({ id, title }) => el("li", {}, el("a", { href: `#admin=${id}`, "aria-current": id === current.id && "page", text: title })));
  return el("nav", { class: "panel pages", "aria-label": "Administration" }, el("ul", {}, ...links));
}
