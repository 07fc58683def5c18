// Feedback on an answer that is recorded: good, or bad with a reason. In words, since not every system has emoji.

import { el } from "./dom.js";

/** The buttons. `rate` stores a rating and its reason, null for none; `problem` is called with a failure. */
export function feedback(rate, problem) {
  const status = el("span", { class: "quiet", role: "status" });
  const reason = el("input", { maxlength: 2000, autocomplete: "off" });
  const form = el("form", { hidden: true }, el("label", {}, "What is wrong with it? ", reason), el("button", { type: "submit", text: "Send" }));
  const buttons = {
    up: el("button", { type: "button", "aria-pressed": "false", text: "Good answer" }),
    down: el("button", { type: "button", "aria-pressed": "false", text: "Bad answer" }),
  };
  async function send(rating) {
    try {
      await rate(rating, reason.value.trim() || null);
      for (const [name, button] of Object.entries(buttons)) button.setAttribute("aria-pressed", String(name === rating));
      status.textContent = rating ? "Thank you." : "";
      return true;
    } catch (failed) {
      problem(failed);
      return false;
    }
  }
  for (const [name, button] of Object.entries(buttons)) {
    button.onclick = async () => {
      const rating = button.getAttribute("aria-pressed") === "true" ? null : name;
      reason.value = "";
      if (!(await send(rating))) return;
      form.hidden = rating !== "down";
      if (!form.hidden) reason.focus();
    };
  }
  form.onsubmit = async (event) => {
    event.preventDefault();
    if (await send("down")) form.hidden = true;
  };
  return el("div", { class: "feedback", role: "group", "aria-label": "Feedback on this answer" }, buttons.up, buttons.down, status, form);
}
