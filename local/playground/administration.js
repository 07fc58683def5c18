// The section of the org's admins: which page of it the URL names, and whether it is shown in place of the desk. The
// pages are in the folder admin, and are loaded when an admin opens the section.

import { byId } from "./dom.js";
import { notice } from "./page.js";

const PARAMETER = "admin";
const STYLE = "admin/style.css";

export class Administration {
  #api;
  #context;
  #frame = null;
  #isEnded = false;
  // Of several calls of open() the latest counts.
  #opened = 0;

  /** `orgs`: those of the user; `who`: the user; `expired` is called when the token is no longer accepted. */
  constructor(api, { who, orgs, expired }) {
    this.#api = api;
    // An API key is no user: it has no pages here, whatever its scopes.
    this.#context = { who, orgs: orgs.filter((org) => who.sub && org.role === "admin"), expired };
  }

  /** Show the page that the URL names, or the desk. */
  async open() {
    const isAdmin = this.#context.orgs.length > 0;
    const parameters = new URLSearchParams(location.hash.slice(1));
    const isRequested = isAdmin && parameters.has(PARAMETER);
    const opened = ++this.#opened;
    const Frame = isRequested && (await load());
    if (this.#isEnded || opened !== this.#opened) return;
    const isOpen = Boolean(Frame);
    byId("desk").hidden = byId("views").hidden = isOpen;
    byId("admin").hidden = byId("to-desk").hidden = !isOpen;
    byId("to-admin").hidden = !isAdmin || isOpen;
    byId("skip").hidden = isOpen;
    if (isRequested && !isOpen) notice("The administration could not be loaded. Reload the page.");
    if (!isOpen) return;
    this.#frame ??= new Frame(this.#api, this.#context);
    await this.#frame.show(parameters.get(PARAMETER), parameters);
  }

  /** The user leaves: nothing of the section stays. */
  end() {
    this.#isEnded = true;
    byId("admin").hidden = byId("to-admin").hidden = byId("to-desk").hidden = true;
    byId("skip").hidden = false;
    if (new URLSearchParams(location.hash.slice(1)).has(PARAMETER)) history.replaceState(null, "", location.pathname);
  }
}

/** The frame of the section, with its style sheet; null if it cannot be loaded. */
async function load() {
  try {
    const [{ Frame }] = await Promise.all([import("./admin/frame.js"), style()]);
    return Frame;
  } catch {
    return null;
  }
}

let loaded = null;

/** Load the style sheet of the section. */
function style() {
  loaded ??= new Promise((resolve) => {
    const link = document.createElement("link");
    link.rel = "stylesheet";
    link.onload = link.onerror = resolve;
    link.href = STYLE;
    document.head.append(link);
  });
  return loaded;
}
