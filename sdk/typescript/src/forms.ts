// Required fields of responses, checked when they arrive.

import { isRecord } from "./utils.js";

// (An object is a record with an id.)
type Kind = "string" | "number" | "boolean" | "record" | "records" | "objects";

/** Fields by their names, the inner ones as `outer.inner`; "" is the whole answer. */
export type Form = Readonly<Record<string, Kind>>;

export const MADE: Form = { id: "string" };
export const DOCUMENT: Form = { id: "string", status: "string" };
export const PROGRESS: Form = { documentId: "string", status: "string" };
export const TICKET: Form = { uploadUrl: "string", upload: "string" };
export const LINK: Form = { url: "string" };
export const LISTED: Form = {
  data: "records",
  pagination: "record",
  "pagination.hasMore": "boolean",
  "pagination.offset": "number",
};
export const ITEMS: Form = { data: "objects" };
export const ROWS: Form = { "": "records" };
export const MATCHES: Form = { matches: "records" };
export const CONTENTS: Form = { documents: "records", chunks: "records" };
export const SEARCH_ANSWER: Form = { answer: "string", citations: "records" };
export const RAG_ANSWER: Form = { answer: "record", citations: "records" };
export const RESULTS: Form = { results: "records" };
export const CHAT_ANSWER: Form = { response: "string", metadata: "record" };
export const SESSION: Form = { sessionId: "string" };
export const ENDING: Form = { metadata: "record" };
export const QUEUED: Form = { queued: "number" };
export const STATS: Form = { totalDocuments: "number" };

/** The first missing or malformed field; undefined without one. */
export function amiss(value: unknown, form: Form): string | undefined {
  const found = Object.entries(form).find(([path, kind]) => !isOf(kind, fieldOf(value, path)));
  return found && (found[0] || "the answer");
}

function fieldOf(value: unknown, path: string): unknown {
  if (path === "") return value;
  return path.split(".").reduce<unknown>((inner, name) => (isRecord(inner) ? inner[name] : undefined), value);
}

function isOf(kind: Kind, value: unknown): boolean {
  if (kind === "record") return isRecord(value);
  if (kind === "records") return Array.isArray(value) && value.every(isRecord);
  if (kind === "objects") return Array.isArray(value) && value.every((row) => isRecord(row) && typeof row["id"] === "string");
  return typeof value === kind;
}
