// Parts that the pages of the administration share: tables, pages of lists, fields, buttons, times, secrets.

import { el, show } from "../dom.js";

const DATE = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium" });
const UTC_DATE = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeZone: "UTC" });
const CLOCK = new Intl.DateTimeFormat("en-GB", { timeStyle: "short" });
const UNITS = ["bytes", "kB", "MB", "GB", "TB"];
export const PAGE = 20;

/** A day, of a date or a time; a dash for none. A date without a time is one in UTC. */
export function day(text) {
  if (!text) return "–";
  const format = text.length === 10 ? UTC_DATE : DATE;
  return el("time", { class: "date", datetime: text, text: format.format(new Date(text)) });
}

/** A time, which breaks between day and clock alone; a dash for none. */
export function time(text) {
  if (!text) return "–";
  const at = new Date(text);
  return el("time", { datetime: text, title: text }, el("span", { class: "date", text: `${DATE.format(at)},` }), ` ${CLOCK.format(at)}`);
}

export function size(bytes) {
  if (bytes === null) return "–";
  let unit = 0;
  for (; bytes >= 1000 && unit < UNITS.length - 1; unit++) bytes /= 1000;
  return `${unit && bytes < 10 ? bytes.toFixed(1) : Math.round(bytes)}\u00a0${UNITS[unit]}`;
}

/** A word in a box; `kind` is completed, failed or nothing. */
export const tag = (text, kind = "") => el("span", { class: `tag ${kind}`, text });

/** A name or an address. It breaks where a line has no room for it, after a dot, a slash or an underscore. */
export const breakable = (text) => el("span", { class: "breakable" }, ...text.split(/(?<=[._/])(?=\w)/).flatMap((part) => [part, el("wbr")]));

/** A text with a smaller one below it. */
export const pair = (main, detail) => el("div", {}, el("span", { class: "main" }, main), detail && el("span", { class: "quiet small" }, detail));

/** A button that cannot be pressed again before its action has ended. */
export function button(text, action, properties = {}) {
  const made = el("button", { type: "button", ...properties, text });
  made.onclick = async () => {
    made.disabled = true;
    try {
      await action();
    } finally {
      made.disabled = false;
    }
  };
  return made;
}

/** A button of a row, with the name of the row for screen readers. */
export const rowButton = (text, name, action) => button(text, action, { class: "small", "aria-label": `${text}: ${name}` });

export const field = (label, control, hint = null) => el("label", { class: "field" }, el("span", { text: label }), control, hint && el("span", { class: "quiet small", text: hint }));

/** A choice; `options` are texts, or pairs of value and text. */
export function select(options, properties = {}, value = null) {
  const pairs = options.map((option) => (Array.isArray(option) ? option : [option, option]));
  return el("select", properties, ...pairs.map(([key, text]) => el("option", { value: key, selected: key === value, text })));
}

export const checkbox = (label, properties = {}) => el("label", { class: "tick" }, el("input", { type: "checkbox", ...properties }), label);

/** A form whose submit button cannot be pressed again before its action has ended. */
export function form(submit, action, ...children) {
  const send = el("button", { type: "submit", text: submit });
  const made = el("form", { class: "sheet", autocomplete: "off" }, ...children, el("div", { class: "row" }, send));
  made.onsubmit = async (event) => {
    event.preventDefault();
    send.disabled = true;
    try {
      await action(made);
    } finally {
      send.disabled = false;
    }
  };
  return made;
}

/** A table; on a phone each row is a card. A column is [title, cell(row)], and a title may be empty. `empty` is shown in
 * place of a table without rows. */
export function table(label, columns, rows, empty) {
  if (!rows.length) return el("p", { class: "quiet none", text: empty });
  const head = columns.map(([title]) => el("th", { role: "columnheader", scope: "col" }, title || el("span", { class: "away", text: "Actions" })));
  const cells = (row) => columns.map(([title, cell]) => el("td", { role: "cell", "data-label": title }, cell(row)));
  return el(
    "table",
    { role: "table", "aria-label": label },
    el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, ...head)),
    el("tbody", { role: "rowgroup" }, ...rows.map((row) => el("tr", { role: "row" }, ...cells(row)))),
  );
}

/** The column of the org, where there are several. */
export const orgColumn = (context) => (context.severalOrgs ? [["Organization", (row) => context.nameOf(row.org_id)]] : []);

/** The address of a list, without the parameters that are empty. */
export function listAddress(route, parameters) {
  return `${route}?${new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== ""))}`;
}

/** A list that comes in pages. `load(offset)` returns {data, pagination}, and `render(rows)` an element. Returns the
 * element and `reload()`, which shows the same page again. */
export function pages(context, load, render) {
  const place = el("div", { class: "list" });
  let offset = 0;
  // Responses may overtake each other: that of an earlier request is dropped.
  let requests = 0;
  async function open(to) {
    const request = ++requests;
    let { data, pagination } = await load(to);
    if (!data.length && to) {
      // The last rows of the last page are gone.
      to = Math.max(0, Math.floor((pagination.total - 1) / PAGE) * PAGE);
      ({ data, pagination } = await load(to));
    }
    if (request !== requests) return;
    offset = to;
    const { total, has_more: hasMore } = pagination;
    const go = (next) => context.attempt(() => open(next));
    const steps = el(
      "div",
      { class: "row steps" },
      button("Previous", () => go(Math.max(0, offset - PAGE)), { disabled: offset === 0 }),
      el("span", { class: "quiet", text: `${(offset + 1).toLocaleString("en")}–${(offset + data.length).toLocaleString("en")} of ${total.toLocaleString("en")}` }),
      button("Next", () => go(offset + PAGE), { disabled: !hasMore }),
    );
    show(place, render(data, total), total > PAGE && steps);
  }
  return { place, reload: () => open(offset), restart: () => open(0) };
}

/** Ask, act, load the list again, and say what happened. Without a question, act at once. */
export async function change(context, reload, question, action, message) {
  if (question && !confirm(question)) return;
  await context.attempt(async () => {
    await action();
    await reload();
    context.say(message);
  });
}

/** A new secret, which is shown once. */
export function secret(title, text) {
  const code = el("code", { class: "secret", tabindex: "0", text });
  const copy = button("Copy", async () => {
    try {
      await navigator.clipboard.writeText(text);
      copy.textContent = "Copied";
    } catch {
      // Browsers offer no clipboard to a page without encryption.
      getSelection().selectAllChildren(code);
    }
  });
  return el("div", { class: "notice", role: "group", "aria-label": title }, el("p", { text: `${title} Copy it now: it is not shown again.` }), el("div", { class: "row" }, code, copy));
}

/** The names of users, by id, as far as they are known. */
export async function userNames(context) {
  try {
    const { data } = await context.api.get("/api/v1/members?limit=100");
    return new Map(data.filter((member) => member.name).map((member) => [member.user_id, member.name]));
  } catch (problem) {
    if (problem.isExpired) throw problem;
    return new Map();
  }
}

export const userName = (names, id) => names.get(id) ?? el("code", { title: id, text: id.slice(0, 8) });
