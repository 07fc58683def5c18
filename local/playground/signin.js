// The sign-in: with a token or key that is pasted, or with one click where the local stack offers the demo's users.

import { byId, el, show } from "./dom.js";

const TOKEN = "token";
const SECRET = "secret";
const QUESTIONS = "questions";

/** The token of this tab, null where no user is signed in. */
export const token = () => sessionStorage.getItem(TOKEN);

/** Sample questions of the user of this tab. */
export const questions = () => JSON.parse(sessionStorage.getItem(QUESTIONS) ?? "[]");

export function keep(text, samples) {
  sessionStorage.setItem(TOKEN, text);
  sessionStorage.setItem(QUESTIONS, JSON.stringify(samples));
}

export function forget() {
  sessionStorage.removeItem(TOKEN);
  sessionStorage.removeItem(QUESTIONS);
}

/** The user that a token names; the API verifies it, this page only tells users apart. Two keys are two. */
export function who(text) {
  try {
    const [, body] = text.split(".");
    const bytes = Uint8Array.from(atob(body.replaceAll("-", "+").replaceAll("_", "/")), (one) => one.charCodeAt(0));
    const claims = JSON.parse(new TextDecoder().decode(bytes));
    if (claims.sub) return { id: `${claims.iss} ${claims.sub}`, sub: claims.sub, name: claims.email ?? claims.sub };
  } catch {
    // Not a token of a user.
  }
  return { id: text, name: "an API key" };
}

/** Move the playground secret from the URL to this tab's storage; whether there was one. */
export function enter() {
  const secret = new URLSearchParams(location.hash.slice(1)).get(SECRET);
  if (!secret) return false;
  sessionStorage.setItem(SECRET, secret);
  history.replaceState(null, "", location.pathname);
  return true;
}

/** Show why a token was refused, and the id by which an admin adds the user; "" is nothing. */
export function report(message, userId = "") {
  byId("signin-problem").textContent = message;
  byId("signin-user").textContent = userId;
  byId("token").setAttribute("aria-invalid", String(Boolean(message)));
}

/** Offer the sign-in. `accept` is called with a token and the user's sample questions. */
export async function offer(accept) {
  byId("token-form").onsubmit = (event) => {
    event.preventDefault();
    const text = byId("token").value.trim().replace(/^Bearer\s+/i, "");
    byId("token").value = "";
    if (text) accept(text, []);
  };
  const users = await offered();
  byId("users").hidden = !users.length;
  show(
    byId("users-list"),
    ...users.map(({ email, about, token: text, questions: samples }) =>
      el("li", {}, el("button", { type: "button", class: "person", onclick: () => accept(text, samples) }, el("b", { text: email }), el("span", { class: "quiet", text: about }))),
    ),
  );
}

/** The demo's users, for those who have the address that the local stack printed. Elsewhere there are none. */
async function offered() {
  const secret = sessionStorage.getItem(SECRET);
  if (!secret) return [];
  try {
    const answer = await fetch("users.json", { headers: { "X-Playground-Secret": secret }, cache: "no-store" });
    return answer.ok ? await answer.json() : [];
  } catch {
    return [];
  }
}
