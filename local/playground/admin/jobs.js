// Ingestion jobs that wait, run or have failed, and the lengths of the worker's queues.

import { count, el, show as fill } from "../dom.js";
import { PAGE, button, field, listAddress, orgColumn, pages, pair, rowButton, select, table, tag, time, userName, userNames } from "./parts.js";

const STATES = [["", "all"], "waiting", "running", "failed"];
const QUEUES = { documents: "Documents to ingest", extractions: "Entities to extract", deliveries: "Webhook events to deliver", removals: "Files to remove", sources: "Sources to list" };
const KINDS = { failed: "failed", running: "completed" };

export async function show(place, context) {
  const names = await userNames(context);
  const lengths = el("div", { class: "list" });
  const state = select(STATES, {}, context.parameters.get("state"));
  const columns = [
    ["Document", (row) => pair(row.title, row.collection)],
    ["State", (row) => pair(tag(row.state, KINDS[row.state]), row.step ?? (row.next_attempt_at && row.error && el("span", {}, "again ", time(row.next_attempt_at))))],
    ["Error", (row) => row.error?.message ?? "–"],
    ["Attempts", (row) => row.attempts],
    ["User", (row) => userName(names, row.user_id)],
    ...orgColumn(context),
    ["Created", (row) => time(row.created_at)],
    ["", (row) => row.state !== "running" && rowButton("Retry", row.title, () => retry([row]))],
  ];
  const list = pages(
    context,
    (offset) => context.api.get(listAddress("/api/v1/jobs", { limit: PAGE, offset, state: state.value })),
    (rows) => {
      const failed = rows.filter((row) => row.state === "failed");
      const all = failed.length > 1 && el("div", { class: "row" }, button(`Retry the ${failed.length} failed jobs of this page`, () => retry(failed)));
      return el("div", { class: "list" }, all, table("Jobs", columns, rows, state.value ? "No job is in this state." : "No job waits, runs or has failed."));
    },
  );
  const retry = (rows) =>
    context.attempt(async () => {
      const { job_ids: ids } = await context.api.post("/api/v1/jobs/retry", { job_ids: rows.map((row) => row.id) });
      await list.reload();
      context.say(ids.length ? `${count(ids.length, "job")} will run again, in your name.` : "No job was retried: none of them waits or has failed any more.");
    });
  const refresh = async () => {
    const [health] = await Promise.all([context.api.get("/api/v1/health"), list.reload()]);
    fill(lengths, ...(health.details?.queue ? [el("h3", { text: "Waiting" }), queues(health.details.queue)] : []));
  };
  state.onchange = () => context.attempt(list.restart);
  await refresh();
  place.append(lengths, el("div", { class: "row filters" }, field("State", state), button("Refresh", () => context.attempt(refresh))), list.place);
}

/** The lengths of the worker's queues. */
function queues(lengths) {
  const tiles = Object.entries(QUEUES).map(([name, title]) => {
    const { waiting, running, oldest_seconds: oldest } = lengths[name];
    const detail = oldest > 60 ? `the oldest has been due for ${Math.round(oldest / 60).toLocaleString("en")} min` : running ? `${running.toLocaleString("en")} running` : "";
    return el("div", {}, el("dt", { text: title }), el("dd", { text: waiting.toLocaleString("en") }), detail && el("dd", { class: "quiet small", text: detail }));
  });
  return el("dl", { class: "tiles" }, ...tiles);
}
