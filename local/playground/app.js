// The page: which user is signed in, the theme, and the controls that are always there.

import { Administration } from "./administration.js";
import { Api } from "./api.js";
import { Desk } from "./desk.js";
import { byId } from "./dom.js";
import * as invitations from "./invitations.js";
import { clear, notice, view } from "./page.js";
import * as signin from "./signin.js";

const API = document.querySelector('meta[name="api"]').content || location.origin;
const THEME = "theme";

let desk = null;
let administration = null;
// Of several sign-ins at once the latest counts.
let attempts = 0;

function leave() {
  desk?.end();
  administration?.end();
  desk = administration = null;
  clear();
}

function signOut() {
  leave();
  byId("desk").hidden = byId("views").hidden = byId("sign-out").hidden = true;
  void offerSignIn();
}

/** The page keeps its content, so that the same user can go on. */
function expire() {
  notice("Your sign-in has ended. Sign in again to continue.");
  if (byId("signin").hidden) void offerSignIn();
}

async function offerSignIn(problem = "", userId = "") {
  const attempt = ++attempts;
  signin.forget();
  signin.report(problem, userId);
  byId("signin").hidden = false;
  await signin.offer(signIn);
  if (attempt === attempts) byId("signin").querySelector(".person, #token").focus();
}

/** Verify a token, then open the page with it. */
async function signIn(token, questions) {
  const attempt = ++attempts;
  const api = new Api(API, token);
  let orgs = [];
  try {
    orgs = (await api.get("/api/v1/orgs")).data;
  } catch (problem) {
    // A server that does not answer now may accept the token later.
    if (attempt === attempts && !problem.isPassing) {
      const prefix = problem.isExpired ? "This token or key is not accepted. " : "";
      const id = problem.code === "no_org" && signin.who(token).sub;
      const offered = offerSignIn(prefix + problem.message, id ? `Your user id: ${id}` : "");
      if (id) void showInvitations(api, token, questions);
      await offered;
      return;
    }
  }
  if (attempt === attempts) enter(api, token, questions, orgs);
}

function showInvitations(api, token, questions) {
  const attempt = attempts;
  const join = () => {
    leave();
    return signIn(token, questions);
  };
  return invitations.show(api, () => attempt === attempts, join);
}

function enter(api, token, questions, orgs) {
  const who = signin.who(token);
  signin.keep(token, questions);
  signin.report("");
  if (desk?.who.id === who.id) {
    desk.renew(token);
  } else {
    leave();
    desk = new Desk(api, { who, questions, orgs, expired: expire });
    administration = new Administration(api, { who, orgs, expired: expire });
  }
  notice("");
  byId("signin").hidden = true;
  byId("sign-out").hidden = false;
  byId("who").textContent = who.name;
  desk.load();
  void administration.open();
  // An API key has no invitations.
  if (who.sub) void showInvitations(api, token, questions);
  byId("question").focus();
}

byId("ask-form").onsubmit = (event) => {
  event.preventDefault();
  void desk.ask();
};
byId("stop").onclick = () => desk?.stop();
byId("question").onkeydown = (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    byId("ask-form").requestSubmit();
  }
};
byId("new-session").onclick = () => {
  desk.begin();
  view("ask");
  byId("question").focus();
};
byId("sign-out").onclick = () => signOut();
byId("views").onclick = ({ target }) => target.dataset.to && view(target.dataset.to);
byId("theme").onclick = () => {
  const theme = document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  localStorage.setItem(THEME, theme === "dark" ? "light" : "dark");
  applyTheme();
};

function applyTheme() {
  const theme = localStorage.getItem(THEME);
  if (theme) document.documentElement.dataset.theme = theme;
}

applyTheme();
signin.enter();
// The printed address, pasted where the page is open already.
window.addEventListener("hashchange", () => {
  if (signin.enter() && !desk) signOut();
  void administration?.open();
});
// A page that comes back from the browser's history may show a user who has signed out since.
window.addEventListener("pageshow", ({ persisted }) => {
  const token = signin.token();
  if (!persisted || (desk && token && signin.who(token).id === desk.who.id)) return;
  leave();
  location.reload();
});
const storedToken = signin.token();
if (storedToken) void signIn(storedToken, signin.questions());
else signOut();
