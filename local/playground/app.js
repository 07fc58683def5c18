// The page: who is signed in, what is shown, and what is done when something goes wrong.

import { Api } from "./api.js";
import { Conversation } from "./conversation.js";
import { byId, show } from "./dom.js";
import { Evidence } from "./evidence.js";
import { Library } from "./library.js";
import { Sessions } from "./sessions.js";
import * as signin from "./signin.js";

const API = document.querySelector('meta[name="api"]').content || location.origin;
const THEMES = ["", "light", "dark"];
// Until the next look whether a server that is gone is back, in milliseconds.
const PAUSES = [1000, 2000, 4000, 8000];

let desk = null;

function notice(text) {
  byId("notice").textContent = text;
  byId("notice").hidden = !text;
}

function signedOut() {
  desk?.conversation.stop();
  desk = null;
  byId("desk").hidden = byId("views").hidden = byId("sign-out").hidden = true;
  byId("who").textContent = "";
  notice("");
  askWho();
}

/** What is on the page stays, for the same person to go on with. */
function expired() {
  desk.conversation.stop();
  notice("Your sign-in has ended. Sign in again to go on.");
  askWho();
}

function askWho() {
  signin.forget();
  byId("signin").hidden = false;
  void signin.ask(signedIn);
}

function signedIn(token) {
  const name = signin.nameOf(token);
  notice("");
  byId("signin").hidden = true;
  byId("desk").hidden = byId("views").hidden = byId("sign-out").hidden = false;
  byId("who").textContent = name;
  if (desk?.name === name) desk.api.renew(token);
  else desk = opened(new Api(API, token), name);
  void desk.library.load();
  void desk.sessions.load();
  byId("question").focus();
}

/** Everything of one user; the next one's begins anew. */
function opened(api, name) {
  const made = { api, name, collection: null, isAway: false };
  const problem = (what) => made === desk && faced(made, what);
  made.evidence = new Evidence(api, problem);
  made.conversation = new Conversation(api, made.evidence, { problem, kept: (session) => made.sessions.load(session) });
  made.sessions = new Sessions(api, {
    problem,
    opened: (session, messages) => {
      made.evidence.clear();
      made.conversation.open(session.id, messages);
      view("ask");
    },
    deleted: (session) => session === made.conversation.session && made.conversation.clear(),
  });
  made.library = new Library(api, {
    problem,
    opened: (document) => made.evidence.open(document),
    chosen: (collection, changed) => {
      made.collection = collection;
      // A session is about one collection, or about all.
      if (changed) made.conversation.clear();
      byId("empty").textContent = made.library.isEmpty
        ? "There is nothing here yet. Upload a file in the library, and ask about it."
        : `Ask something of ${collection ? collection.name : "your documents"}.`;
    },
  });
  made.evidence.clear();
  made.conversation.clear();
  show(byId("uploads"));
  return made;
}

function faced(made, problem) {
  if (problem.isExpired) {
    expired();
  } else if (problem.isUnreachable) {
    void back(made);
  } else {
    notice(problem.message);
  }
}

/** Wait until the server is back, and say so. */
async function back(made) {
  if (made.isAway) return;
  made.isAway = true;
  notice("The server does not answer. Trying again …");
  for (let look = 0; made === desk; look++) {
    await new Promise((resolve) => setTimeout(resolve, PAUSES[Math.min(look, PAUSES.length - 1)]));
    if (await made.api.isThere()) break;
  }
  made.isAway = false;
  if (made !== desk) return;
  notice("The server is back.");
  void made.library.load();
  void made.sessions.load();
}

/** What the controls say. Throws an Error that says what is wrong with them. */
function looking() {
  return {
    collection_id: desk.collection?.id ?? null,
    mode: byId("mode").value,
    top_k: Number(byId("top-k").value),
    document_type: byId("document-type").value || null,
    metadata_filter: metadata(byId("metadata").value),
    enable_graph: byId("graph").checked,
    rerank: byId("rerank").checked || null,
    preset: byId("preset").value,
    reasoning_mode: byId("deep").checked ? "deep" : "standard",
  };
}

function metadata(text) {
  const pairs = text.split(",").map((pair) => pair.trim()).filter(Boolean);
  return Object.fromEntries(
    pairs.map((pair) => {
      const [key, ...rest] = pair.split("=");
      if (!key.trim() || !rest.length) throw new Error(`“${pair}” is not key=value.`);
      const value = rest.join("=").trim();
      return [key.trim(), /^(true|false|-?\d+(\.\d+)?)$/.test(value) ? JSON.parse(value) : value];
    }),
  );
}

async function ask(submitted) {
  submitted.preventDefault();
  const question = byId("question").value.trim();
  if (!question || desk.conversation.isBusy) return;
  notice("");
  try {
    const wanted = looking();
    byId("question").value = "";
    byId("send").hidden = true;
    byId("stop").hidden = false;
    await desk.conversation.ask(question, wanted);
  } catch (wrong) {
    notice(wrong.message);
  } finally {
    byId("send").hidden = false;
    byId("stop").hidden = true;
    byId("question").focus({ preventScroll: true });
  }
}

/** On a phone one of the three is shown. */
function view(name) {
  document.body.dataset.view = name;
  document.dispatchEvent(new Event("view"));
}

document.addEventListener("view", () => {
  for (const button of byId("views").children) {
    if (button.dataset.to === document.body.dataset.view) button.setAttribute("aria-current", "page");
    else button.removeAttribute("aria-current");
  }
});

byId("ask-form").onsubmit = ask;
byId("stop").onclick = () => desk?.conversation.stop();
byId("question").onkeydown = (pressed) => {
  if (pressed.key === "Enter" && !pressed.shiftKey && !pressed.isComposing) {
    pressed.preventDefault();
    byId("ask-form").requestSubmit();
  }
};
byId("new-session").onclick = () => {
  desk.conversation.clear();
  desk.evidence.clear();
  void desk.sessions.load(null);
  view("ask");
  byId("question").focus();
};
byId("sign-out").onclick = () => signedOut();
byId("views").onclick = ({ target }) => target.dataset.to && view(target.dataset.to);
byId("theme").onclick = () => {
  const root = document.documentElement;
  root.dataset.theme = THEMES[(THEMES.indexOf(root.dataset.theme ?? "") + 1) % THEMES.length];
};

const known = signin.token();
if (known) signedIn(known);
else signedOut();
