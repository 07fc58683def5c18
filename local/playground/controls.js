// Search options of the form.

import { byId } from "./dom.js";

// Of a value that is no text, or one that says it is.
const JSON_VALUE = /^(?:true|false|-?(?:0|[1-9]\d*)(?:\.\d+)?|".*")$/;

// A wrong value behind closed controls would stop a question without a word.
byId("controls").addEventListener("invalid", () => (byId("controls").open = true), { capture: true });

/** The options of the search. Throws an Error that names the invalid one. */
export function looking(collection) {
  return {
    collection_id: collection?.id ?? null,
    mode: byId("mode").value,
    top_k: Number(byId("top-k").value),
    document_type: byId("document-type").value || null,
    metadata_filter: metadata(byId("metadata").value),
    enable_graph: byId("graph").checked,
    rerank: byId("rerank").checked || null,
    preset: byId("preset").value,
    reasoning_mode: byId("deep").checked ? "deep" : "standard",
  };
}

function metadata(text) {
  const pairs = text.split(",").map((pair) => pair.trim());
  return Object.fromEntries(pairs.filter(Boolean).map(pairOf));
}

function pairOf(text) {
  const [key, ...rest] = text.split("=");
  if (!key.trim() || !rest.length) throw new Error(`“${text}” is not key=value.`);
  const value = rest.join("=").trim();
  try {
    return [key.trim(), JSON_VALUE.test(value) ? JSON.parse(value) : value];
  } catch {
    throw new Error(`“${value}” is not a value.`);
  }
}
