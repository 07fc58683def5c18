// The page: who is signed in, what is shown, and what is done when something goes wrong.

import { Api } from "./api.js";
import { looking } from "./controls.js";
import { Conversation } from "./conversation.js";
import { byId, show } from "./dom.js";
import { Evidence } from "./evidence.js";
import { Library } from "./library.js";
import { Sessions } from "./sessions.js";
import * as signin from "./signin.js";

const API = document.querySelector('meta[name="api"]').content || location.origin;
const THEME = "theme";
// Until the next look whether a server that is gone is back, in milliseconds.
const PAUSES = [1000, 2000, 4000, 8000];

let desk = null;

function notice(text) {
  byId("notice").textContent = text;
  byId("notice").hidden = !text;
}

/** Nothing of whoever was here stays, and nothing of theirs comes any more. */
function emptied() {
  desk?.conversation.stop();
  desk?.api.end();
  desk = null;
  for (const place of ["collections", "documents", "documents-count", "uploads", "sessions"]) show(byId(place));
}

function signedOut() {
  emptied();
  byId("desk").hidden = byId("views").hidden = byId("sign-out").hidden = true;
  byId("who").textContent = "";
  notice("");
  void askWho();
}

/** What is on the page stays, for the same person to go on with. */
function expired() {
  notice("Your sign-in has ended. Sign in again to go on.");
  if (byId("signin").hidden) void askWho();
}

async function askWho() {
  signin.forget();
  byId("signin").hidden = false;
  await signin.ask(signedIn);
  byId("signin").querySelector(".person, #token").focus();
}

function signedIn(token) {
  const who = signin.who(token);
  notice("");
  byId("signin").hidden = true;
  byId("desk").hidden = byId("views").hidden = byId("sign-out").hidden = false;
  byId("who").textContent = who.name;
  if (desk?.who.id === who.id) desk.api.renew(token);
  else opened(new Api(API, token), who);
  void desk.library.load();
  void desk.sessions.load();
  byId("question").focus();
}

/** Everything of one user; the next one's begins anew. */
function opened(api, who) {
  emptied();
  const made = { api, who, collection: null, isAway: false };
  desk = made;
  const problem = (what) => made === desk && faced(made, what);
  made.evidence = new Evidence(api, problem);
  made.conversation = new Conversation(api, made.evidence, { problem, kept: (session) => made.sessions.load(session) });
  made.sessions = new Sessions(api, {
    problem,
    opened: (session, messages) => {
      made.library.choose(session.collection_id);
      made.evidence.clear();
      made.conversation.open(session.id, messages);
      view("ask");
    },
    deleted: (session) => session === made.conversation.session && begun(made),
  });
  made.library = new Library(api, {
    problem,
    opened: (document) => made.evidence.open(document),
    chosen: (collection, changed) => {
      made.collection = collection;
      // A session is about one collection, or about all.
      if (changed) begun(made);
      byId("empty").textContent = made.library.isEmpty
        ? "There is nothing here yet. Upload a file in the library, and ask about it."
        : `Ask something of ${collection ? collection.name : "your documents"}.`;
    },
  });
  made.evidence.clear();
  made.conversation.clear();
}

/** A new session begins with the next question. */
function begun(made) {
  made.conversation.clear();
  made.evidence.clear();
  void made.sessions.load(null);
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
  notice("The server does not answer. Trying again …");
  if (made.isAway) return;
  made.isAway = true;
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

async function ask(submitted) {
  submitted.preventDefault();
  const question = byId("question").value.trim();
  if (!question || desk.conversation.isBusy) return;
  notice("");
  try {
    const wanted = looking(desk.collection);
    byId("question").value = "";
    byId("send").hidden = true;
    byId("stop").hidden = false;
    const wasAnswered = await desk.conversation.ask(question, wanted);
    // To be asked again.
    if (!wasAnswered && !byId("question").value) byId("question").value = question;
  } catch (wrong) {
    notice(wrong.message);
  } finally {
    byId("send").hidden = false;
    byId("stop").hidden = true;
    if (byId("signin").hidden) byId("question").focus({ preventScroll: true });
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
  begun(desk);
  view("ask");
  byId("question").focus();
};
byId("sign-out").onclick = () => signedOut();
byId("views").onclick = ({ target }) => target.dataset.to && view(target.dataset.to);
byId("theme").onclick = () => {
  const chosen = document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  localStorage.setItem(THEME, chosen === "dark" ? "light" : "dark");
  themed();
};

function themed() {
  const theme = localStorage.getItem(THEME);
  if (theme) document.documentElement.dataset.theme = theme;
}

themed();
signin.enter();
// The printed address, pasted where the page is open already.
window.addEventListener("hashchange", () => signin.enter() && !desk && signedOut());
const known = signin.token();
if (known) signedIn(known);
else signedOut();
