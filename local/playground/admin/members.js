// Members of the org: listed, invited by their user id, given a role, removed. Admins do not change themselves.

import { el, show as fill } from "../dom.js";
import { PAGE, change, day, field, form, orgColumn, pages, pair, rowButton, select, table, tag } from "./parts.js";

const ROUTE = "/api/v1/members";
const ROLES = ["member", "admin"];

export async function show(place, context) {
  const { api } = context;
  const nameOf = (row) => row.name ?? row.user_id;
  const columns = [
    ["Member", (row) => (row.name ? pair(row.name, `id ${row.user_id}`) : pair(el("code", { text: row.user_id })))],
    ["Role", (row) => tag(row.role ?? "member", row.role === "admin" ? "completed" : "")],
    ...orgColumn(context),
    ["Member since", (row) => day(row.created_at)],
    ["Calls in 90 days", (row) => row.calls.toLocaleString("en")],
    ["Last call", (row) => day(row.last_called_on)],
    ["", (row) => row.user_id !== context.who.sub && actions(row)],
  ];
  const invitationColumns = [
    ["Invited", columns[0][1]],
    ["Role", columns[1][1]],
    ...orgColumn(context),
    ["Invited on", (row) => day(row.created_at)],
    ["", (row) => rowButton("Withdraw", nameOf(row), () => apply(() => remove(row), `The invitation of ${nameOf(row)} is withdrawn.`))],
  ];
  const list = pages(
    context,
    (offset) => api.get(`${ROUTE}?limit=${PAGE}&offset=${offset}`),
    (rows) => table("Members", columns, rows, "No members are listed: this deployment keeps them in a table of its own."),
  );
  const invited = pages(
    context,
    (offset) => api.get(`${ROUTE}?invited=true&limit=${PAGE}&offset=${offset}`),
    (rows) => table("Invitations", invitationColumns, rows, "No invitation is open."),
  );
  const reload = () => Promise.all([list.reload(), invited.reload()]);
  const apply = (action, message) => change(context, reload, "", action, message);
  const put = (member) => api.post(ROUTE, member);
  const remove = ({ org_id: org, user_id: id }) => api.delete(`${ROUTE}/${id}?org_id=${org}`);

  function actions(row) {
    const { org_id, user_id, name } = row;
    const [role, text] = row.role === "admin" ? ["member", "Make member"] : ["admin", "Make admin"];
    return el(
      "div",
      { class: "row" },
      rowButton(text, nameOf(row), () => confirm(`${text}: ${nameOf(row)}?`) && apply(() => put({ org_id, user_id, name, role }), `${nameOf(row)} is ${role} now.`)),
      rowButton("Remove", nameOf(row), () => confirm(`Remove ${nameOf(row)} from the org? Tokens and API keys of the member get no documents of the org from now on.`) && apply(() => remove(row), `${nameOf(row)} is removed.`)),
    );
  }

  function creation() {
    const id = el("input", { required: true, pattern: "[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", title: "A UUID", maxlength: "36" });
    const name = el("input", { maxlength: "200" });
    const role = select(ROLES);
    const org = select(context.orgs.map(({ id: orgId, name: title }) => [orgId, title ?? orgId]));
    const add = (sheet) =>
      apply(async () => {
        await put({ org_id: org.value, user_id: id.value.trim(), name: name.value.trim() || null, role: role.value });
        sheet.reset();
        sheet.parentElement.open = false;
      }, "The user is invited, and belongs to the org after accepting.");
    return form(
      "Invite",
      add,
      field("User id", id, "A UUID. Users without an org see theirs when they sign in here."),
      field("Name or e-mail", name, "Admins see it in lists."),
      field("Role", role),
      context.severalOrgs && field("Organization", org),
    );
  }

  await reload();
  const heading = el("h3", { text: "Open invitations" });
  fill(place, el("details", {}, el("summary", { text: "New member" }), creation()), list.place, heading, invited.place);
}
