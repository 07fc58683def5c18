// Audit events: which user did what in which namespace of the knowledge API, without any text; quotas of tokens, and changes of members.

import { el } from "../dom.js";
import { PAGE, breakable, field, listAddress, orgColumn, pages, select, table, time, userName, userNames } from "./parts.js";

const EVENTS = [["", "all"], "knowledge.ingest", "knowledge.retrieve", "knowledge.query", "knowledge.delete", "quota.alert", "quota.exceeded", "member.put", "member.remove"];

export async function show(place, context) {
  const names = await userNames(context);
  const event = select(EVENTS);
  const namespace = el("input", { type: "search", maxlength: "255", placeholder: "all" });
  const columns = [
    ["Time", (row) => time(row.created_at)],
    ["Event", (row) => breakable(row.event)],
    ["User", (row) => userName(names, row.user_id)],
    ...orgColumn(context),
    ["Namespace, quota or member", (row) => row.namespace],
    ["Documents", (row) => row.document_count.toLocaleString("en")],
    ["Chunks", (row) => row.chunk_count.toLocaleString("en")],
    ["Top score", (row) => row.top_score?.toFixed(2) ?? "–"],
  ];
  const list = pages(
    context,
    (offset) => context.api.get(listAddress("/api/v1/events", { limit: PAGE, offset, event: event.value, namespace: namespace.value })),
    (rows) => table("Audit events", columns, rows, event.value || namespace.value ? "No event matches." : "No events yet."),
  );
  event.onchange = namespace.onchange = () => context.attempt(list.restart);
  await list.reload();
  place.append(
    el("p", { class: "quiet", text: "Requests to the knowledge API, changes of members, and token quotas that reached their alert or limit. Events have counts and a score, never a text or a question." }),
    el("div", { class: "row filters" }, field("Event", event), field("Namespace, quota or member", namespace)),
    list.place,
  );
}
