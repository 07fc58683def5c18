// Operations on the whole page, for several modules.

import { byId, show } from "./dom.js";

// Ids of the elements that show a user's data, beside forms.
const PLACES = ["collections", "documents", "documents-count", "failed", "failed-count", "uploads", "sessions", "results", "graph-view", "passage", "org", "into", "users-list", "who", "admin", "invitations-list"];

export function notice(text) {
  byId("notice").textContent = text;
  byId("notice").hidden = !text;
}

/** Whether an answer is on its way. */
export function busy(isBusy) {
  byId("send").hidden = isBusy;
  byId("stop").hidden = !isBusy;
}

/** On a phone one of the three is shown. */
export function view(name) {
  document.body.dataset.view = name;
  for (const button of byId("views").children) {
    if (button.dataset.to === name) button.setAttribute("aria-current", "page");
    else button.removeAttribute("aria-current");
  }
  // The browser gives a hidden panel its former place again.
  const panel = byId(name);
  if (panel.dataset.isNew === "true") panel.scrollTop = 0;
  panel.dataset.isNew = "false";
}

/** Remove all that a user has read and written. */
export function clear() {
  const empty = byId("empty");
  show(empty);
  show(byId("turns"), empty);
  for (const place of PLACES) show(byId(place));
  for (const form of document.forms) form.reset();
  for (const details of document.querySelectorAll("#desk details")) details.open = false;
  for (const more of ["more-documents", "more-sessions"]) byId(more).hidden = true;
  byId("document-name").value = "";
  for (const place of ["org-field", "into-field", "document-name", "failed-uploads", "invitations"]) byId(place).hidden = true;
  notice("");
  busy(false);
  view("ask");
}
