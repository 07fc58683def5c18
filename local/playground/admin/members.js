// Members of the org. The deployer writes them, so this page only shows them.

import { el } from "../dom.js";
import { PAGE, day, orgColumn, pages, pair, table, tag } from "./parts.js";

export async function show(place, context) {
  const columns = [
    ["Member", (row) => (row.name ? pair(row.name, row.user_id) : pair(el("code", { text: row.user_id })))],
    ["Role", (row) => tag(row.role ?? "member", row.role === "admin" ? "completed" : "")],
    ...orgColumn(context),
    ["Member since", (row) => day(row.created_at)],
    ["Calls in 90 days", (row) => row.calls.toLocaleString("en")],
    ["Last call", (row) => day(row.last_called_on)],
  ];
  const list = pages(
    context,
    (offset) => context.api.get(`/api/v1/members?limit=${PAGE}&offset=${offset}`),
    (rows) => table("Members", columns, rows, "No members are listed: this deployment keeps them in a table of its own."),
  );
  await list.reload();
  place.append(el("p", { class: "quiet", text: "Members are added, changed and removed in the database, by the operator of this deployment." }), list.place);
}
