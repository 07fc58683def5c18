// Recorded requests: the setting, a summary, the list with filters, and the explanation of one record with its label.

import { count, el, milliseconds, number, show as fill } from "../dom.js";
import { plain } from "../markdown.js";
import { PAGE, button, checkbox, field, form, listAddress, orgColumn, pages, pair, select, table, tag, time, userName, userNames } from "./parts.js";

const ANSWERED = [["", "all"], ["true", "answered"], ["false", "withheld"]];
const RATINGS = [["", "all"], ["up", "good"], ["down", "bad"]];
const LABELLED = [["", "all"], ["true", "labelled"], ["false", "not labelled"]];
const ORDERS = [["created_at", "newest first"], ["milliseconds", "slowest first"]];
// Of the text of a passage, in characters.
const EXCERPT = 300;
const VERDICTS = [["", "no label"], ["right", "right"], ["wrong", "wrong"]];
const path = (id) => `/api/v1/records/${encodeURIComponent(id)}`;
const result = (row) => tag(row.answered ? "answered" : "withheld", row.answered ? "completed" : "");
const keyOf = (row) => row.key_id && `key ${row.key_name ?? row.key_id.slice(0, 8)}`;
const grade = (feedback) => (feedback.rating === "up" ? "good" : "bad");
const rating = ({ feedback }) => (feedback ? pair(grade(feedback), feedback.reason) : "–");

export async function show(place, context) {
  const id = context.parameters.get("record");
  if (id) await showRecord(place, context, id);
  else await showRecords(place, context);
}

async function showRecords(place, context) {
  const { api } = context;
  const names = await userNames(context);
  const filters = { answered: select(ANSWERED), rating: select(RATINGS), labelled: select(LABELLED), sort_by: select(ORDERS) };
  const columns = [
    ["Question", (row) => pair(el("a", { href: `#admin=records&record=${row.id}`, text: row.question }), `${row.function} request, ${milliseconds(row.milliseconds)}`)],
    ["Result", (row) => pair(result(row), `${row.level} confidence`)],
    ["Rating", rating],
    ["Label", (row) => row.label?.verdict ?? "–"],
    ["User", (row) => pair(userName(names, row.user_id), keyOf(row))],
    ...orgColumn(context),
    ["Time", (row) => time(row.created_at)],
  ];
  const list = pages(
    context,
    (offset) => {
      const values = Object.entries(filters).map(([name, control]) => [name, control.value]);
      return api.get(listAddress("/api/v1/records", { limit: PAGE, offset, ...Object.fromEntries(values) }));
    },
    (rows) => table("Records", columns, rows, filters.answered.value || filters.rating.value || filters.labelled.value ? "No record matches." : "No records yet."),
  );
  for (const control of Object.values(filters)) control.onchange = () => context.attempt(list.restart);
  const off = el("div", { "aria-live": "polite" });
  const content = el(
    "div",
    { class: "list" },
    summarized(await api.get("/api/v1/records/summary")),
    el("div", { class: "row filters" }, field("Result", filters.answered), field("Rating", filters.rating), field("Label", filters.labelled), field("Order", filters.sort_by)),
    list.place,
  );
  /** `orgs`: those that record no requests. */
  const say = (orgs) => {
    content.hidden = orgs.length === context.orgs.length;
    fill(off, orgs.length > 0 && el("p", { class: "quiet none", text: recordingIsOff(context, orgs) }));
  };
  const [settings] = await Promise.all([settingsOf(context, say), list.reload()]);
  place.append(settings, off, content);
}

function recordingIsOff(context, orgs) {
  const names = context.severalOrgs ? ` for ${orgs.map((id) => context.nameOf(id)).join(", ")}` : "";
  return `Recording is off${names}: questions and answers are not stored. To store them, enter a number of days under Recording.`;
}

/** A form for the retention of each org. `say` is called with the ids of the orgs that record no requests. */
async function settingsOf(context, say) {
  const { api } = context;
  // The days of each org, null where nothing is recorded.
  const retention = new Map();
  const title = el("summary");
  const showState = () => {
    const states = [...retention].map(([id, days]) => `${context.severalOrgs ? `${context.nameOf(id)} ` : ""}${days ? count(days, "day") : "off"}`);
    title.textContent = `Recording: ${states.join(", ")}`;
    say([...retention.keys()].filter((id) => !retention.get(id)));
  };
  const made = context.orgs.map(async ({ id }) => {
    const { retention_days: days } = await api.get(`/api/v1/records/settings?org_id=${id}`);
    retention.set(id, days);
    const input = el("input", { type: "number", min: "1", max: "3650", value: days ?? "", placeholder: "off" });
    const save = async () => {
      const next = input.value ? Number(input.value) : null;
      const isFirst = !retention.get(id);
      if (next === null && !confirm("Stop recording, and delete all records of the org? This cannot be undone.")) return;
      await context.attempt(async () => {
        await api.patch("/api/v1/records/settings", { org_id: id, retention_days: next });
        retention.set(id, next);
        showState();
        context.say(next ? `Requests are recorded for ${count(next, "day")}.${isFirst ? " In the first minute, some may be left out." : ""}` : "Requests are no longer recorded.");
      });
    };
    const label = `Days to keep each request${context.severalOrgs ? ` of ${context.nameOf(id)}` : ""}; empty: nothing is recorded`;
    return form("Save", save, field(label, input, "Admins then read the members' questions and answers. Tell the members."));
  });
  const forms = await Promise.all(made);
  showState();
  return el("details", {}, title, ...forms);
}

function summarized(summary) {
  const shares = [
    count(summary.requests, "request"),
    `${summary.answered} answered, ${summary.withheld} withheld`,
    `rated ${summary.rated_up} good, ${summary.rated_down} bad`,
    summary.requests > 0 && `median ${milliseconds(summary.p50_ms)}, 95th percentile ${milliseconds(summary.p95_ms)}`,
  ];
  return el(
    "div",
    {},
    el("p", { text: `Last 30 days: ${shares.filter(Boolean).join("; ")}.` }),
    summary.unanswered.length > 0 &&
      el(
        "details",
        {},
        el("summary", { text: "Most asked without an answer" }),
        el("ol", { class: "plain-list" }, ...summary.unanswered.map((one) => el("li", { text: `${one.question} (${one.requests})` }))),
      ),
  );
}

async function showRecord(place, context, id) {
  const record = await context.api.get(path(id));
  const replayed = el("div", { "aria-live": "polite" });
  const replay = () =>
    context.attempt(async () => {
      fill(replayed, changes(await context.api.post(`${path(record.id)}/replay`, {})));
    });
  fill(
    place,
    el("p", {}, el("a", { href: "#admin=records", text: "All records" })),
    el("h3", { text: record.question }),
    el("p", {}, result(record), ` ${record.confidence.level} confidence, score ${number(record.confidence.score)}; ${record.function} request, ${milliseconds(record.milliseconds)}, `, time(record.created_at), record.key_id && `, ${keyOf(record)}`),
    el("ul", { class: "quiet" }, ...record.confidence.because.map((reason) => el("li", { text: reason }))),
    !record.is_complete && el("p", { class: "quiet", text: "You do not see a passage of this answer any more, or it was changed. Its text is left out." }),
    record.answer && el("blockquote", { class: "answer", text: record.answer }),
    record.feedback && el("p", { text: `Rating by the user: ${[grade(record.feedback), record.feedback.reason].filter(Boolean).join(", ")}` }),
    el("h3", { text: "Searches" }),
    el("ul", {}, ...record.queries.map((query) => el("li", {}, el("span", { text: query.text ?? "A rewritten question, left out." }), el("span", { class: "quiet small", text: ` ${worded(query.options)}` })))),
    el("h3", { text: "Passages" }),
    passages(record),
    generation(record.generation),
    el("h3", { text: "Label" }),
    labelForm(context, record),
    el("h3", { text: "Replay" }),
    el("div", { class: "row" }, button("Ask again in today's documents", replay)),
    replayed,
  );
}

/** The options of a search in words, without the org, and its filter on metadata as it was sent. */
function worded(options) {
  const { filters: _filters, org_id: _org, metadata = {}, ...rest } = { ...options, ...options.filters };
  const flags = Object.entries(rest).map(([key, value]) => (value === true ? key : value === false ? `no ${key}` : `${key.replaceAll("_", " ")} ${[value].flat().join(" or ")}`));
  const conditions = Object.entries(metadata).map(([key, value]) => `metadata ${key} ${compared(value)}`);
  return [...flags, ...conditions].join(", ");
}

const isOperators = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const compared = (value) => (isOperators(value) ? Object.entries(value).map(([operator, operand]) => `${operator} ${said(operand)}`).join(" ") : said(value));
const said = (value) => (typeof value === "object" ? JSON.stringify(value) : String(value));

/** The beginning of a passage as a reader sees it, up to the end of a word. */
function excerpt(text) {
  const all = plain(text);
  return all.length > EXCERPT ? `${all.slice(0, EXCERPT).replace(/\s+\S*$/, "")} …` : all;
}

function passages(record) {
  const legs = (row) => row.legs.map(({ leg, rank, score }) => `${leg} ${rank} (${number(score)})`).join(", ");
  const columns = [
    ["Rank", (row) => row.rank],
    ["Passage", (row) => pair(row.title ?? "not visible", row.text && excerpt(row.text))],
    ["Score", (row) => number(row.score)],
    ["Found by (rank, score)", (row) => legs(row) || "–"],
  ];
  return table("Passages", columns, record.passages, "Nothing was found.");
}

function generation(made) {
  if (!made) return el("p", { class: "quiet", text: "No model was called." });
  if (made.model === "extractive") return el("p", { class: "quiet", text: "No model was called: the answer has the documents' own sentences." });
  const tokens = `${made.model}: ${made.prompt_tokens.toLocaleString("en")} tokens of prompt, ${made.completion_tokens.toLocaleString("en")} of completion`;
  if (!made.prompt) return el("p", { class: "quiet", text: tokens });
  const messages = made.prompt.map(({ role, content }) => el("p", { class: "verbatim" }, el("b", { text: `${role}: ` }), content));
  return el("details", {}, el("summary", { text: tokens }), ...messages);
}

/** The verdict, and the documents that answer: those of the passages to choose from, and ids of others. */
function labelForm(context, record) {
  const chosen = new Set(record.label?.document_ids ?? []);
  const titles = new Map(record.passages.filter((row) => row.title).map((row) => [row.document_id, row.title]));
  const verdict = select(VERDICTS, {}, record.label?.verdict ?? "");
  const boxes = [...titles].map(([id, title]) => checkbox(title, { value: id, checked: chosen.has(id) }));
  const others = el("input", { value: [...chosen].filter((id) => !titles.has(id)).join(" "), autocomplete: "off" });
  const save = (made) =>
    context.attempt(async () => {
      const ids = [...made.querySelectorAll("[type=checkbox]:checked")].map((box) => box.value);
      const documents = [...new Set([...ids, ...others.value.split(/[\s,]+/).filter(Boolean)])];
      const body = verdict.value ? { verdict: verdict.value, document_ids: documents } : { verdict: null };
      await context.api.post(`${path(record.id)}/label`, body);
      context.say(verdict.value ? `The record is labelled ${verdict.value}.` : "The label is removed.");
    });
  return form(
    "Save label",
    save,
    field(record.answered ? "Was the answer right?" : "Was it right not to answer?", verdict),
    boxes.length > 0 && el("fieldset", {}, el("legend", { text: "Documents that answer the question" }), ...boxes),
    field("Other documents that answer it, by id", others, "The list of documents shows the ids. Separate several with spaces."),
  );
}

function changes({ before, after, passages: moved }) {
  const outcome = ({ confidence, answered }) => `${confidence.level} confidence${answered === null ? "" : answered ? ", answered" : ", withheld"}`;
  const columns = [
    ["Passage", (row) => row.title ?? "not visible"],
    ["Before", (row) => row.before ?? "–"],
    ["Now", (row) => row.after ?? "lost"],
  ];
  return el(
    "div",
    {},
    el("p", { text: `Before: ${outcome(before)}. Now: ${outcome(after)}.` }),
    after.answer && el("blockquote", { class: "answer", text: after.answer }),
    table("Changed passages", columns, moved, "The same passages, in the same order."),
  );
}
