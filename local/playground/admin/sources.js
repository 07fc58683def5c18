// Sources of the org: websites and buckets that the worker follows.

import { el, show as fill } from "../dom.js";
import { breakable, change, field, form, orgColumn, pair, rowButton, select, table, tag, time } from "./parts.js";

const INTERVALS = [[3600, "every hour"], [86_400, "every day"], [604_800, "every week"]];
const EXAMPLE = "https://example.com/docs";
const ROUTE = "/api/v1/sources";

export async function show(place, context) {
  const { api } = context;
  const list = el("div", { class: "list" });
  const { data: collections } = await api.get("/api/v1/collections?limit=100");
  const names = new Map(collections.map(({ id, name }) => [id, name]));
  async function load() {
    const { data } = await api.get(ROUTE);
    fill(list, table("Sources", columns, data, "No sources yet."));
  }
  const apply = (question, action, message) => change(context, load, question, action, message);
  const address = (row) => `${ROUTE}/${row.id}`;
  const columns = [
    ["Address", (row) => pair(breakable(row.address), names.get(row.collection_id))],
    ["State", (row) => state(row)],
    ...orgColumn(context),
    ["Last run", (row) => lastRun(row.last_run)],
    ["Next run", (row) => time(row.next_run_at)],
    [
      "",
      (row) =>
        el(
          "div",
          { class: "row" },
          row.enabled && row.status === "waiting" && rowButton("Run now", row.address, () => apply("", () => api.post(`${address(row)}/run`), "The source runs as soon as the worker is free.")),
          row.enabled
            ? rowButton("Disable", row.address, () => apply(`Disable ${row.address}? Its documents stay and are not updated.`, () => api.patch(address(row), { enabled: false }), "The source is disabled."))
            : rowButton("Enable", row.address, () => apply("", () => api.patch(address(row), { enabled: true }), "The source is enabled.")),
          rowButton("Delete", row.address, () => apply(`Delete the source ${row.address}? Its documents stay.`, () => api.delete(address(row)), "The source is deleted.")),
        ),
    ],
  ];
  await load();
  fill(place, el("details", {}, el("summary", { text: "New source" }), creation()), list);

  function creation() {
    const collection = select([...names]);
    const kind = select([["website", "Website"], ["bucket", "Bucket"]]);
    const url = el("input", { required: true, maxlength: "2000", placeholder: EXAMPLE });
    const interval = select(INTERVALS.map(([seconds, text]) => [String(seconds), text]), {}, "86400");
    const endpoint = el("input", { type: "url", maxlength: "500", placeholder: "https://s3.example.com" });
    const key = el("input", { maxlength: "4000" });
    const secret = el("input", { type: "password", maxlength: "4000", autocomplete: "new-password" });
    const ofBuckets = el("fieldset", { hidden: true }, el("legend", { text: "Bucket" }),
      field("Endpoint", endpoint, "Empty: AWS. Others need the operator's permission."),
      field("Access key id", key, "Empty: the bucket is public."),
      field("Secret access key", secret));
    kind.onchange = () => {
      ofBuckets.hidden = kind.value !== "bucket";
      url.placeholder = ofBuckets.hidden ? EXAMPLE : "s3://bucket/prefix";
    };
    const create = (sheet) =>
      context.attempt(async () => {
        const body = { collection_id: collection.value, kind: kind.value, address: url.value, interval_seconds: Number(interval.value) };
        if (!ofBuckets.hidden) {
          body.endpoint = endpoint.value || null;
          body.credentials = key.value || secret.value ? { access_key_id: key.value, secret_access_key: secret.value } : null;
        }
        await api.post(ROUTE, body);
        sheet.reset();
        kind.onchange();
        sheet.parentElement.open = false;
        await load();
        context.say("The source is created and runs as soon as the worker is free.");
      });
    return form(
      "Create",
      create,
      field("Collection", collection),
      field("Kind", kind),
      field("Address", url, "Of a website: a page with all pages below it, or a sitemap."),
      field("Update", interval),
      ofBuckets,
    );
  }
}

function state(row) {
  if (!row.enabled) return tag("disabled", "failed");
  if (row.status === "running") return tag("running");
  const { error, listed, failed } = row.last_run ?? {};
  if (error) return pair(tag(listed ? `${failed} failed` : "last run failed", "failed"), error.message);
  return row.last_run?.finished_at ? tag("up to date", "completed") : tag("not run yet");
}

function lastRun(run) {
  if (!run) return "–";
  if (run.error && !run.listed) return time(run.finished_at ?? run.started_at);
  const counts = `${run.listed} listed, ${run.stored} stored, ${run.deleted} deleted, ${run.failed} failed`;
  const leftOut = Object.entries(run.left_out).map(([reason, count]) => `, ${count} left out (${reason.replaceAll("_", " ")})`);
  return pair(time(run.finished_at ?? run.started_at), counts + leftOut.join(""));
}
