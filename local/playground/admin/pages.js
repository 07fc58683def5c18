// The list of all pages of the administration, in the order of the navigation. To add a page:
//
// 1. Write admin/NAME.js with `export async function show(place, context)`. It fills the empty element `place`, and may
//    throw a Problem, which the frame shows. `context` has: api (the platform API as the user), orgs (those that the user
//    administers), who (the user), parameters (of the URL after `#`), nameOf(org id), say(text) for a result, and
//    attempt(action), which runs an action and shows its problem. admin/parts.js has tables, fields and buttons.
// 2. Add a line below. The page is then at #admin=ID, and its module is loaded when it is opened.
//
// The test of the administration opens every page of this list on a phone, in both colour schemes and with axe-core.

export const PAGES = [
  { id: "usage", title: "Usage", load: () => import("./usage.js") },
  { id: "documents", title: "Documents", load: () => import("./documents.js") },
  { id: "sources", title: "Sources", load: () => import("./sources.js") },
  { id: "jobs", title: "Jobs", load: () => import("./jobs.js") },
  { id: "members", title: "Members", load: () => import("./members.js") },
  { id: "keys", title: "API keys", load: () => import("./keys.js") },
  { id: "webhooks", title: "Webhooks", load: () => import("./webhooks.js") },
  { id: "records", title: "Records", load: () => import("./records.js") },
  { id: "events", title: "Audit events", load: () => import("./events.js") },
];
