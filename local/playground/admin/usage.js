// Usage of the org: the number of its documents and users, and a chart of its calls by day.

import { count, el, show as fill } from "../dom.js";
import { field, select, size, table } from "./parts.js";

const DAYS = [
  ["7", "7 days"],
  ["30", "30 days"],
  ["90", "90 days"],
];
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });

export async function show(place, context) {
  const [stats, usage] = await Promise.all([context.api.get("/api/v1/stats"), load(context, "30")]);
  const chart = el("div", { class: "list" }, ...calls(usage));
  const choice = select(DAYS, {}, "30");
  choice.onchange = () => context.attempt(async () => fill(chart, ...calls(await load(context, choice.value))));
  fill(
    place,
    totals(stats),
    !stats.is_complete && el("p", { class: "quiet", text: "The org has more rows than are counted here: the totals are lower bounds." }),
    el("div", { class: "row head" }, el("h3", { text: "Calls by day" }), field("Period", choice)),
    chart,
    el("p", { class: "quiet small", text: "A call is a request within the rate limit, by an API key or by a user who belongs to this org alone. Days are in UTC; the counts are kept for 90 days." }),
  );
}

const load = async (context, days) => (await context.api.get(`/api/v1/usage?days=${days}`)).data;

function totals(stats) {
  const tiles = [
    ["Calls today", stats.api_calls_today],
    ["Users in 90 days", stats.total_users],
    ["Collections", stats.total_collections],
    ["Documents", stats.total_documents],
    ["Chunks", stats.total_chunks],
    ["Entities", stats.total_entities],
    ["Storage", size(stats.storage_used_bytes)],
  ];
  return el("dl", { class: "tiles" }, ...tiles.map(([name, value]) => el("div", {}, el("dt", { text: name }), el("dd", { text: value.toLocaleString("en") }))));
}

/** The chart, and the same as a table. */
function calls(days) {
  const sum = days.reduce((total, one) => total + one.calls, 0);
  const most = days.reduce((busiest, one) => (one.calls > busiest.calls ? one : busiest));
  const text = sum ? `${count(sum, "call")}; most on ${DAY.format(new Date(most.day))}: ${most.calls.toLocaleString("en")}` : "No calls in this period";
  const reading = el("p", { class: "quiet reading", text });
  const say = (one) => `${DAY.format(new Date(one.day))}: ${count(one.calls, "call")} by ${count(one.users, "user")}`;
  const bars = days.map((one) => {
    const fillOf = el("span", { class: "amount" });
    fillOf.style.height = `${(100 * one.calls) / Math.max(1, most.calls)}%`;
    return el("span", { class: "day", title: say(one), onpointerenter: () => (reading.textContent = say(one)) }, fillOf);
  });
  const [first, middle, last] = [days[0], days[Math.floor(days.length / 2)], days.at(-1)];
  const chart = el(
    "figure",
    { class: "chart" },
    el("div", { class: "bars", role: "img", "aria-label": `Calls by day. ${text}.`, onpointerleave: () => (reading.textContent = text) }, el("span", { class: "most quiet", text: most.calls.toLocaleString("en") }), ...bars),
    el("div", { class: "axis quiet small", "aria-hidden": "true" }, ...[first, middle, last].map((one) => el("span", { text: DAY.format(new Date(one.day)) }))),
    el("figcaption", {}, reading),
  );
  const columns = [
    ["Day", (one) => DAY.format(new Date(one.day))],
    ["Calls", (one) => one.calls.toLocaleString("en")],
    ["Users", (one) => one.users.toLocaleString("en")],
    ["Tokens of models", (one) => one.model_tokens.toLocaleString("en")],
    ["Tokens of embeddings", (one) => one.embedding_tokens.toLocaleString("en")],
  ];
  return [chart, el("details", {}, el("summary", { text: "As a table, with tokens" }), table("Calls by day", columns, days.toReversed(), ""))];
}
