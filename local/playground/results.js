// What a question found, best first, with what the order and the vectors say of each.

import { bar, count, el, milliseconds, number, show } from "./dom.js";
import { plain } from "./markdown.js";

/** Fills a place with a retrieval's answer; `open` is called with a result. `nameOf` is the name of a collection. */
export function results(place, answer, open, nameOf) {
  const how = answer.retrieval_metadata;
  if (!answer.results.length) {
    show(place, el("p", { class: "quiet", text: "No document that you may see matches. Rephrase the question, or widen the filters." }));
    return;
  }
  const parts = [
    `mode ${answer.mode}`,
    milliseconds(how.retrieval_time_ms),
    `${count(how.considered, "chunk")} considered`,
    how.exact && "all compared",
    how.reranked_by && `reranked by ${how.reranked_by}`,
  ];
  show(
    place,
    el("details", { class: "quiet" }, el("summary", { text: `${count(answer.total_results, "result")}, best first${how.rerank_failed ? "; not reranked" : ""}` }), parts.filter(Boolean).join(" · ")),
    el("ol", { class: "results" }, ...answer.results.map((result) => row(result, open, isAmbiguous(result, answer.results) && nameOf(result.collection_id)))),
  );
}

/** Whether another document has the same title. */
const isAmbiguous = (result, all) => all.some((other) => other.document.title === result.document.title && other.document_id !== result.document_id);

function row(result, open, collection) {
  const { title } = result.document;
  const { page_number: page, section } = result.chunk_metadata;
  const place = [collection, page && `page ${page}`, section?.startsWith(`${title} > `) ? section.slice(title.length + 3) : section !== title && section];
  return el(
    "li",
    {},
    el(
      "button",
      { type: "button", class: "result", onclick: () => open(result) },
      el("span", { class: "title", text: title }),
      el("span", { class: "quiet", text: place.filter(Boolean).join(" · ") }),
      el("span", { class: "snippet", text: plain(result.content) }),
      el(
        "span",
        { class: "scores" },
        el("span", { text: `score ${number(result.score)}` }),
        bar(result.score),
        el("span", { text: `similarity ${number(result.similarity)}` }),
        bar(result.similarity ?? 0, "similarity"),
        result.metadata.graph_sourced && el("span", { class: "tag", text: "by the graph" }),
        result.owner_id && el("span", { class: "tag", text: "private" }),
      ),
    ),
  );
}
