// A document as it was read, with the passage that was cited highlighted.

import { el, show } from "./dom.js";

// Of a sentence that passes for a quotation, in characters.
const SHORTEST = 20;

/** A document, as a function that fills a place with it. `cited` is the id of one of its chunks, or null; `said` what an answer says by
 * it: sentences of that which are the document's own are what is highlighted, else the chunk. Throws a Problem. */
export async function passage(api, documentId, cited, said) {
  const about = await api.get(`/api/v1/documents/${encodeURIComponent(documentId)}`);
  const ids = [{ kind: "document", id: `doc_${documentId}` }];
  if (cited) ids.push({ kind: "chunk", id: `chnk_${cited}` });
  const workspace = { "X-Workspace-Id": `ws_${about.collection_id}` };
  const { documents, chunks } = await api.post("/v1/contents", { ids, include_raw: true }, workspace);
  const text = documents[0]?.body;
  const parts = text ? highlighted(text, chunks[0], said) : alone(chunks[0]);
  return (place) => {
    show(
      place,
      el("h2", { text: about.title }),
      el("p", { class: "quiet", text: describe(about) }),
      el("div", { class: "document" }, ...parts),
    );
    const first = place.querySelector("mark");
    first?.scrollIntoView({ block: "center" });
    first?.focus({ preventScroll: true });
  };
}

const marked = (text) => el("mark", { tabindex: "-1", text });

/** Of a document that is too long to be shown whole, or is not read yet. */
const alone = (chunk) => [chunk ? marked(chunk.text) : "The text of this document is not here yet."];

function highlighted(text, chunk, said) {
  const parts = [];
  let from = 0;
  for (const [start, end] of quoted(text, said) ?? spanned(text, chunk)) {
    parts.push(text.slice(from, start), marked(text.slice(start, end)));
    from = end;
  }
  return [...parts, text.slice(from)];
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

function describe(about) {
  const known = [about.filename, about.content_type, about.owner_id && "private", about.processing_info?.document_type];
  const metadata = Object.entries(about.metadata).map(([key, value]) => `${key}: ${plain(value)}`);
  return [...known.filter(Boolean), ...metadata].join(" · ");
}

function plain(value) {
  if (Array.isArray(value)) return value.map(plain).join(", ");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
