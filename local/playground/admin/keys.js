// API keys of the org: create, rotate, revoke. Users rotate their own keys; admins revoke all.

import { el, show as fill } from "../dom.js";
import { change, checkbox, day, field, form, orgColumn, pair, rowButton, secret, select, table, tag, time, userName, userNames } from "./parts.js";

const SCOPES = [
  ["documents:read", "read documents"],
  ["documents:write", "add, change and delete documents"],
  ["retrievals:read", "search"],
  ["chat:read", "ask questions"],
  ["collections:manage", "create, change and delete collections"],
  ["admin", "everything, administration included"],
];
// What a key is for, and the scopes for it.
const USES = [
  ["A chat front end or an OpenAI client: ask questions", ["chat:read"]],
  ["An MCP client or agent: search, ask, read documents", ["chat:read", "documents:read"]],
  ["SDK or HTTP: search", ["retrievals:read"]],
  ["SDK or HTTP: search, ask, and manage documents", ["documents:read", "documents:write", "retrievals:read", "chat:read", "collections:manage"]],
  ["Administration by program", ["admin"]],
];
const LIFETIMES = [
  ["30", "in 30 days"],
  ["90", "in 90 days"],
  ["365", "in a year"],
  ["", "never"],
];
const OVERLAPS = [
  ["0", "stops working at once"],
  ["3600", "works one more hour"],
  ["86400", "works one more day"],
  ["604800", "works one more week"],
];
const DAY = 86_400_000;

export async function show(place, context) {
  const { api } = context;
  const list = el("div", { class: "list" });
  const secretPlace = el("div", { "aria-live": "polite" });
  const overlap = select(OVERLAPS, {}, "0");
  const rotation = el("div", { class: "row filters" }, field("Old key after a rotation", overlap));
  const names = await userNames(context);

  async function load() {
    const { keys } = await api.get("/api/keys");
    rotation.hidden = !keys.some(canRotate);
    fill(list, table("API keys", columns, keys, "No API keys yet."));
  }
  // The list comes first, so that a click after the secret appears is on a row of the new list.
  const loadAndShow = (content) => load().finally(() => fill(secretPlace, content));
  const rotate = async (key) => {
    if (!confirm(`Replace the key “${key.name}” by a new one? The old key ${overlap.selectedOptions[0].text}.`)) return;
    await context.attempt(async () => {
      const newKey = await api.post(`/api/keys/${key.id}/rotate`, { overlap_seconds: Number(overlap.value) });
      await loadAndShow(secret(`The new key “${newKey.name}”.`, newKey.key));
    });
  };
  const revoke = (key) =>
    change(
      context,
      load,
      `Revoke the key “${key.name}”? Requests with it are refused from now on. This cannot be undone.`,
      () => api.delete(`/api/keys/${key.id}`),
      `The key “${key.name}” is revoked.`,
    );
  const canRotate = (key) => isValid(key) && context.who.sub === key.owner_id;
  const columns = [
    ["Key", (key) => pair(key.name, el("code", { text: `${key.prefix}…` }))],
    ["State", (key) => state(key)],
    ["User", (key) => userName(names, key.owner_id)],
    ...orgColumn(context),
    ["Scopes", (key) => pair(key.scopes.join(", "), key.collection && `only the collection ${key.collection}`)],
    ["Created", (key) => day(key.created_at)],
    ["Last used", (key) => time(key.last_used_at)],
    ["Expires", (key) => (key.expires_at ? day(key.expires_at) : "never")],
    ["", (key) => isValid(key) && el("div", { class: "row" }, canRotate(key) && rowButton("Rotate", key.name, () => rotate(key)), rowButton("Revoke", key.name, () => revoke(key)))],
  ];
  await load();
  const collections = await collectionsOf(api);
  fill(
    place,
    secretPlace,
    el("details", {}, el("summary", { text: "New API key" }), creation()),
    rotation,
    list,
  );

  function creation() {
    const name = el("input", { required: true, maxlength: "100" });
    const org = select(context.orgs.map(({ id, name: title }) => [id, title ?? id]));
    const collection = select([["", "all"]]);
    const showCollections = () => {
      const own = collections.filter((row) => row.org_id === org.value).map((row) => row.name);
      fill(collection, el("option", { value: "", text: "all" }), ...own.map((text) => el("option", { value: text, text })));
    };
    org.onchange = showCollections;
    showCollections();
    const lifetime = select(LIFETIMES, {}, "90");
    const scopes = SCOPES.map(([scope, does]) => checkbox(el("span", {}, el("code", { text: scope }), ` ${does}`), { value: scope, checked: scope === "retrievals:read" }));
    const boxes = scopes.map((scope) => scope.querySelector("input"));
    const use = select(USES.map(([text], index) => [String(index), text]), {}, "2");
    use.onchange = () => {
      for (const box of boxes) box.checked = USES[use.value][1].includes(box.value);
    };
    const create = (sheet) =>
      context.attempt(async () => {
        const selection = [...sheet.querySelectorAll("[type=checkbox]:checked")].map((box) => box.value);
        if (!selection.length) throw new Error("Choose at least one scope.");
        const newKey = await api.post("/api/keys", {
          name: name.value,
          kind: selection.includes("admin") ? "admin" : "live",
          scopes: selection,
          org_id: org.value,
          collection: collection.value || null,
          expires_at: lifetime.value ? new Date(Date.now() + Number(lifetime.value) * DAY).toISOString() : null,
        });
        sheet.reset();
        showCollections();
        sheet.parentElement.open = false;
        await loadAndShow(secret(`The key “${newKey.name}”.`, newKey.key));
      });
    return form(
      "Create",
      create,
      field("Name", name),
      context.severalOrgs && field("Organization", org),
      field("Use", use, "It selects the scopes below."),
      field("Collection", collection),
      field("Expires", lifetime),
      el("fieldset", {}, el("legend", { text: "The key may" }), ...scopes),
    );
  }
}

const isValid = (key) => !key.revoked_at && !(key.expires_at && new Date(key.expires_at) <= new Date());

function state(key) {
  if (key.revoked_at) return tag("revoked", "failed");
  return isValid(key) ? tag("valid", "completed") : tag("expired");
}

async function collectionsOf(api) {
  return (await api.get("/api/v1/collections?limit=100&sort_by=name&order=asc")).data;
}
