// Webhooks of the org, and the deliveries of one.

import { el, show as fill } from "../dom.js";
import { PAGE, breakable, change, checkbox, field, form, orgColumn, pages, pair, rowButton, secret, select, table, tag, time } from "./parts.js";

const EVENTS = [
  "collection.created",
  "collection.updated",
  "collection.deleted",
  "document.processing_started",
  "document.processing_completed",
  "document.processing_failed",
  "document.deleted",
  "quota.alert",
  "quota.exceeded",
];
const KINDS = { failed: "failed", delivered: "completed" };
const ERRORS = {
  address_refused: "The address is not public.",
  refused: "The address answered with an error.",
  timed_out: "The address did not answer in time.",
  unreachable: "The address could not be reached.",
  webhook_disabled: "The webhook was disabled.",
};

export async function show(place, context) {
  const id = context.parameters.get("webhook");
  if (id) await showDeliveries(place, context, id);
  else await showWebhooks(place, context);
}

async function showWebhooks(place, context) {
  const { api } = context;
  const list = el("div", { class: "list" });
  const secretPlace = el("div", { "aria-live": "polite" });
  async function load() {
    const { data } = await api.get("/api/v1/webhooks");
    fill(list, table("Webhooks", columns, data, "No webhooks yet."));
  }
  const apply = (question, action, message) => change(context, load, question, action, message);
  const rotate = async (row) => {
    const webhook = await api.post(`${address(row)}/rotate`, { overlap_seconds: 86_400 });
    fill(secretPlace, secret("The signing secret of the webhook.", webhook.secret));
  };
  const address = (row) => `/api/v1/webhooks/${row.id}`;
  const columns = [
    ["Address", (row) => pair(breakable(row.url), row.description)],
    ["State", (row) => state(row)],
    ...orgColumn(context),
    ["Events", (row) => el("span", {}, ...row.events.join(", ").split(" ").flatMap((name) => [breakable(name), " "]))],
    ["Created", (row) => time(row.created_at)],
    [
      "",
      (row) =>
        el(
          "div",
          { class: "row" },
          el("a", { class: "button small", href: `#admin=webhooks&webhook=${row.id}`, "aria-label": `Deliveries: ${row.url}`, text: "Deliveries" }),
          row.enabled
            ? rowButton("Disable", row.url, () => apply(`Disable the webhook ${row.url}? Events that wait for it are dropped, and new ones are not sent.`, () => api.patch(address(row), { enabled: false }), "The webhook is disabled."))
            : rowButton("Enable", row.url, () => apply("", () => api.patch(address(row), { enabled: true }), "The webhook is enabled.")),
          rowButton("New secret", row.url, () => apply(`Create a new signing secret for ${row.url}? The old one signs too for a day.`, () => rotate(row), "")),
          rowButton("Delete", row.url, () => apply(`Delete the webhook ${row.url} with its deliveries? This cannot be undone.`, () => api.delete(address(row)), "The webhook is deleted.")),
        ),
    ],
  ];
  await load();
  fill(place, secretPlace, el("details", {}, el("summary", { text: "New webhook" }), creation()), list);

  function creation() {
    const url = el("input", { type: "url", required: true, maxlength: "2000", placeholder: "https://example.com/hook" });
    const description = el("input", { maxlength: "500" });
    const org = select(context.orgs.map(({ id, name }) => [id, name ?? id]));
    const events = EVENTS.map((event) => checkbox(el("code", { text: event }), { value: event, checked: event.startsWith("document.processing_") && event !== "document.processing_started" }));
    const create = (sheet) =>
      context.attempt(async () => {
        const selection = [...sheet.querySelectorAll("[type=checkbox]:checked")].map((box) => box.value);
        if (!selection.length) throw new Error("Choose at least one event.");
        const webhook = await api.post("/api/v1/webhooks", { url: url.value, description: description.value || null, events: selection, org_id: org.value });
        sheet.reset();
        sheet.parentElement.open = false;
        fill(secretPlace, secret("The signing secret of the webhook.", webhook.secret));
        await load();
      });
    return form(
      "Create",
      create,
      field("Address", url, "It receives a POST for each event, and must be public."),
      field("Description", description),
      context.severalOrgs && field("Organization", org),
      el("fieldset", {}, el("legend", { text: "Events" }), ...events),
    );
  }
}

function state(row) {
  if (!row.enabled) return tag("disabled", "failed");
  return row.failing_since ? pair(tag("failing", "failed"), el("span", {}, "since ", time(row.failing_since))) : tag("enabled", "completed");
}

async function showDeliveries(place, context, id) {
  const address = `/api/v1/webhooks/${encodeURIComponent(id)}`;
  const webhook = await context.api.get(address);
  const columns = [
    ["Event", (row) => pair(breakable(row.type), row.data.object.name ?? row.data.object.quota ?? `document ${row.data.object.id}`)],
    ["State", (row) => pair(tag(row.status, KINDS[row.status]), ERRORS[row.error] ?? row.error)],
    ["Response", (row) => row.response_status ?? "–"],
    ["Attempts", (row) => row.attempts],
    ["Created", (row) => time(row.created_at)],
    ["Finished or next attempt", (row) => (row.next_attempt_at ? el("span", {}, "next attempt ", time(row.next_attempt_at)) : time(row.finished_at))],
    ["", (row) => row.status !== "waiting" && rowButton("Send again", `${row.type}, ${row.event_id}`, () => repeat(row))],
  ];
  const list = pages(
    context,
    (offset) => context.api.get(`${address}/deliveries?limit=${PAGE}&offset=${offset}`),
    (rows) => table("Deliveries", columns, rows, "Nothing has been sent to this address yet."),
  );
  const repeat = (row) =>
    change(context, list.reload, "", () => context.api.post(`${address}/deliveries/${row.id}/repeat`), "The event will be sent again.");
  await list.reload();
  place.append(el("p", {}, el("a", { href: "#admin=webhooks", text: "All webhooks" }), ` / ${webhook.url}`), el("h3", { text: "Deliveries" }), list.place);
}
