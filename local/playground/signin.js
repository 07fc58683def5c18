// Who is signed in: by a token that was pasted, or by one click where the local stack offers its people.

import { byId, el, show } from "./dom.js";

const TOKEN = "token";
const DOOR = "door";

/** The token of this tab, null where nobody is signed in. */
export const token = () => sessionStorage.getItem(TOKEN);

export function forget() {
  sessionStorage.removeItem(TOKEN);
}

/** Who a token says it is; the API verifies it, this page only tells people apart. Two keys are two. */
export function who(text) {
  try {
    const [, body] = text.split(".");
    const bytes = Uint8Array.from(atob(body.replaceAll("-", "+").replaceAll("_", "/")), (one) => one.charCodeAt(0));
    const claims = JSON.parse(new TextDecoder().decode(bytes));
    if (claims.sub) return { id: `${claims.iss} ${claims.sub}`, name: claims.email ?? claims.sub };
  } catch {
    // Not a token of a user.
  }
  return { id: text, name: "an API key" };
}

/** Take the door's key out of the address, into this tab's keeping; whether there was one. */
export function enter() {
  const door = new URLSearchParams(location.hash.slice(1)).get(DOOR);
  if (!door) return false;
  sessionStorage.setItem(DOOR, door);
  history.replaceState(null, "", location.pathname);
  return true;
}

/** Ask who it is. `signedIn` is called with the token. */
export async function ask(signedIn) {
  const accept = (text) => {
    sessionStorage.setItem(TOKEN, text);
    byId("token").value = "";
    signedIn(text);
  };
  byId("token-form").onsubmit = (submitted) => {
    submitted.preventDefault();
    const text = byId("token").value.trim().replace(/^Bearer\s+/i, "");
    if (text) accept(text);
  };
  const people = await offered();
  byId("people").hidden = !people.length;
  show(
    byId("people-list"),
    ...people.map(({ email, about, token: text }) =>
      el("li", {}, el("button", { type: "button", class: "person", onclick: () => accept(text) }, el("b", { text: email }), el("span", { class: "quiet", text: about }))),
    ),
  );
}

/** The local stack's people, to whoever has the address that it printed. Elsewhere there are none. */
async function offered() {
  const known = sessionStorage.getItem(DOOR);
  if (!known) return [];
  try {
    const answer = await fetch("people.json", { headers: { "X-Playground-Door": known }, cache: "no-store" });
    return answer.ok ? await answer.json() : [];
  } catch {
    return [];
  }
}
