// Collections of the org, and the documents of one: search by name and state, deletion of several at once.

import { count, el, show as fill } from "../dom.js";
import { PAGE, button, change, day, field, listAddress, orgColumn, pages, pair, rowButton, select, size, table, tag } from "./parts.js";

const STATES = [["", "all"], "processing", "completed", "failed"];
const ORDERS = [
  ["created_at desc", "newest first"],
  ["created_at asc", "oldest first"],
  ["title asc", "by title"],
  ["size_bytes desc", "largest first"],
];
const TITLES_IN_QUESTION = 3;
const KINDS = { failed: "failed", completed: "completed" };
const visibleTo = (row) => (row.owner_id ? "only its owner" : "all members");
const link = (id, text) => el("a", { href: `#admin=documents&collection=${encodeURIComponent(id)}`, text });

export async function show(place, context) {
  const id = context.parameters.get("collection");
  if (id) await showDocuments(place, context, id);
  else await showCollections(place, context);
}

async function showCollections(place, context) {
  const columns = [
    ["Collection", (row) => pair(link(row.id, row.name), row.description)],
    ...orgColumn(context),
    ["Documents", (row) => row.document_count.toLocaleString("en")],
    ["Visible to", visibleTo],
    ["Created", (row) => day(row.created_at)],
    ["", (row) => rowButton("Delete", row.name, () => remove(row))],
  ];
  const list = pages(
    context,
    (offset) => context.api.get(`/api/v1/collections?limit=${PAGE}&offset=${offset}&sort_by=name&order=asc`),
    (rows) => table("Collections", columns, rows, "No collections yet."),
  );
  const remove = (row) =>
    change(
      context,
      list.reload,
      `Delete the collection “${row.name}” with ${count(row.document_count, "document")}, for all members? This cannot be undone.`,
      () => context.api.delete(`/api/v1/collections/${row.id}?cascade=true`),
      `The collection “${row.name}” is deleted.`,
    );
  await list.reload();
  place.append(list.place);
}

async function showDocuments(place, context, id) {
  const { api } = context;
  const collection = await api.get(`/api/v1/collections/${encodeURIComponent(id)}`);
  const name = el("input", { type: "search", maxlength: "200", placeholder: "all" });
  const state = select(STATES);
  const order = select(ORDERS);
  const all = el("input", { type: "checkbox", onchange: ({ target }) => selectAll(target.checked) });
  const actions = el("div", { class: "row" });
  const bulk = el("div", { class: "row" }, el("label", { class: "tick" }, all, "All documents of this page"), actions);
  const boxes = () => [...list.place.querySelectorAll("tbody [type=checkbox]")];
  const selection = () => boxes().filter((box) => box.checked);

  const columns = [
    ["Select", (row) => el("label", { class: "tick pad" }, el("input", { type: "checkbox", value: row.id, "data-title": row.title, "aria-label": `Select: ${row.title}`, onchange: showBulk }))],
    ["Document", (row) => pair(row.title, `${row.filename && row.filename !== row.title ? `${row.filename}, ` : ""}id ${row.id}`)],
    ["State", (row) => pair(tag(row.status, KINDS[row.status]), row.error?.message)],
    ["Visible to", visibleTo],
    ["Chunks", (row) => row.chunk_count.toLocaleString("en")],
    ["Size", (row) => size(row.size_bytes)],
    ["Added", (row) => day(row.created_at)],
  ];
  const list = pages(
    context,
    (offset) => {
      const [sortBy, direction] = order.value.split(" ");
      const filters = { name: name.value, status: state.value };
      return api.get(listAddress("/api/v1/documents", { collection_id: id, limit: PAGE, offset, sort_by: sortBy, order: direction, ...filters }));
    },
    (rows, total) => {
      queueMicrotask(showBulk);
      const summary = name.value || state.value ? `${count(total, "document")} found` : count(total, "document");
      return el("div", { class: "list" }, el("p", { class: "quiet", text: summary }), table("Documents", columns, rows, name.value || state.value ? "No document matches." : "This collection has no documents."));
    },
  );

  function selectAll(isSelected) {
    for (const box of boxes()) box.checked = isSelected;
    showBulk();
  }

  function showBulk() {
    const many = selection().length;
    fill(actions, many > 0 && button(`Delete ${count(many, "document")}`, remove, { class: "danger" }), many > 0 && button("Select none", () => selectAll(false)));
    all.checked = many > 0 && many === boxes().length;
    bulk.hidden = !boxes().length;
  }

  async function remove() {
    const ids = selection().map((box) => box.value);
    const titles = selection().slice(0, TITLES_IN_QUESTION).map((box) => `“${box.dataset.title}”`);
    if (ids.length > TITLES_IN_QUESTION) titles.push(`${ids.length - TITLES_IN_QUESTION} more`);
    if (!confirm(`Delete ${count(ids.length, "document")} from “${collection.name}”, with chunks and original files, for all members? This cannot be undone.\n\n${titles.join(", ")}`)) return;
    await context.attempt(async () => {
      const { document_ids: deletedIds } = await api.post("/api/v1/documents/delete", { document_ids: ids });
      await list.reload();
      context.say(`${count(deletedIds.length, "document")} deleted.`);
    });
  }

  let waiting = null;
  name.oninput = () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => context.attempt(list.restart), 300);
  };
  state.onchange = order.onchange = () => context.attempt(list.restart);
  await list.reload();
  place.append(
    el("p", {}, el("a", { href: "#admin=documents", text: "All collections" }), ` / ${collection.name}`),
    el("div", { class: "row filters" }, field("Title or file name", name), field("State", state), field("Order", order)),
    bulk,
    list.place,
  );
}
