// The text of a document, with the cited passage highlighted.

import { el, show } from "./dom.js";
import { Source } from "./inline.js";
import { markdown } from "./markdown.js";

// Of a sentence that passes for a quotation, in characters.
const SHORTEST = 20;
// Of a text that is shown as Markdown, in characters. Files of these kinds are shown as they are.
const MAX_MARKDOWN = 1_000_000;
const VERBATIM = new Set(["code", "json"]);

/** A document, as a function that fills a place with it. `cited` is the id of one of its chunks, or null; `said` what an answer says by
 * it: sentences of that which are the document's own are highlighted, else the chunk; `nameOf` is the name of a collection. Throws a Problem. */
export async function passage(api, documentId, cited, said, nameOf) {
  const about = await api.get(`/api/v1/documents/${encodeURIComponent(documentId)}`);
  const ids = [{ kind: "document", id: `doc_${documentId}` }];
  if (cited) ids.push({ kind: "chunk", id: `chnk_${cited}` });
  const workspace = { "X-Workspace-Id": `ws_${about.collection_id}` };
  const { documents, chunks } = await api.post("/v1/contents", { ids, include_raw: true }, workspace);
  const text = documents[0]?.body;
  const isVerbatim = VERBATIM.has(about.processing_info?.service_used);
  const body = text ? highlighted(text, chunks[0], said, isVerbatim) : alone(chunks[0], isVerbatim);
  return (place) => {
    show(
      place,
      el("h2", { text: about.title }),
      el("p", { class: "quiet", text: describe(about, nameOf(about.collection_id)) }),
      el("div", { class: isVerbatim ? "document verbatim" : "document" }, body),
    );
    const first = place.querySelector("mark");
    first?.scrollIntoView({ block: "center" });
    first?.focus({ preventScroll: true });
  };
}

/** The passage of a document that is too long to be shown whole, or is not processed yet. */
function alone(chunk, isVerbatim) {
  return chunk ? shown(chunk.text, [[0, chunk.text.length]], isVerbatim) : "This document has no text yet, because it is still processed.";
}

function highlighted(text, chunk, said, isVerbatim) {
  return shown(text, quoted(text, said) ?? spanned(text, chunk), isVerbatim);
}

function shown(text, spans, isVerbatim) {
  return isVerbatim || text.length > MAX_MARKDOWN ? new Source(text, spans).slice(0, text.length) : markdown(text, spans);
}

/** Where sentences of the answer stand in the document word for word, in order; null where none does. */
function quoted(text, said) {
  const spans = [];
  for (const sentence of said.split(/(?<=[.!?])\s+|:\s/)) {
    const start = sentence.length < SHORTEST ? -1 : text.indexOf(sentence.trim());
    if (start >= 0) spans.push([start, start + sentence.trim().length]);
  }
  spans.sort(([one], [other]) => one - other);
  const apart = spans.filter(([start], index) => index === 0 || start >= spans[index - 1][1]);
  return apart.length ? apart : null;
}

function spanned(text, chunk) {
  if (!chunk) return [];
  // Spans count characters, JavaScript halves of some.
  const before = Array.from(text).slice(0, chunk.span.end);
  const start = before.slice(0, chunk.span.start).join("").length;
  return [[start, before.join("").length]];
}

function describe(about, collection) {
  const facts = [collection, about.filename, about.content_type, about.owner_id && "private", about.processing_info?.document_type];
  const metadata = Object.entries(about.metadata).map(([key, value]) => `${key}: ${plain(value)}`);
  return [...facts.filter(Boolean), ...metadata, ...about.notes].join(" · ");
}

function plain(value) {
  if (Array.isArray(value)) return value.map(plain).join(", ");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
