// Invitations of the signed-in user to other orgs, to join or to decline.

import { byId, el, list, show as clear } from "./dom.js";

const ROUTE = "/api/v1/invitations";

/** Show the invitations; `joined` is called after the user has joined an org. Without an answer of the server there are
 * none: the page works without them. `isCurrent` tells whether that user is still signed in. */
export async function show(api, isCurrent, joined) {
  let invitations = [];
  try {
    invitations = (await api.get(ROUTE)).data;
  } catch {
    // The request for the orgs reports the problem.
  }
  if (isCurrent()) fill(invitations);

  function fill(rows) {
    byId("invitations").hidden = !rows.length;
    const items = rows.map((row) => item(row, () => fill(rows.filter((other) => other !== row))));
    if (items.length) list(byId("invitations-list"), ...items);
    else clear(byId("invitations-list"));
  }

  function item({ org_id: org, org_name: name, role }, remove) {
    const problem = el("span", { class: "problem", role: "alert" });
    const answer = async (accept) => {
      try {
        await api.post(`${ROUTE}/${org}`, { accept });
      } catch (error) {
        problem.textContent = error.message;
        return;
      }
      if (!isCurrent()) return;
      remove();
      if (accept) await joined();
      else if (document.activeElement === document.body) byId(byId("desk").hidden ? "token" : "question").focus();
    };
    return el(
      "li",
      {},
      el("span", { text: `${name} invites you as ${role}.` }),
      el("button", { type: "button", "aria-label": `Join ${name}`, text: "Join", onclick: () => answer(true) }),
      el("button", { type: "button", class: "plain", "aria-label": `Decline the invitation of ${name}`, text: "Decline", onclick: () => answer(false) }),
      problem,
    );
  }
}
