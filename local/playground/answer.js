// An answer as it comes: its text with [N] as buttons, how sure it is, and how long each stage took.

import { bar, el, milliseconds, number, show, svg } from "./dom.js";

const CITED = /\[(\d{1,3}(?:\s*,\s*\d{1,3})*)\]/g;
// What may become one: it waits for the rest.
const HALF = /\[[\d\s,]{0,40}$/;

/** Writes a text into a place. `open` is called with the number of a citation, and what it stands for. */
export class Text {
  #place;
  #open;
  #known;
  #waiting = "";

  /** `known` says how many sources there are. */
  constructor(place, known, open) {
    this.#place = place;
    this.#known = known;
    this.#open = open;
  }

  add(text) {
    const all = this.#waiting + text;
    const half = all.search(HALF);
    const ready = half < 0 ? all : all.slice(0, half);
    this.#waiting = all.slice(ready.length);
    this.#write(ready);
  }

  end() {
    this.#write(this.#waiting);
    this.#waiting = "";
  }

  #write(text) {
    let from = 0;
    for (const found of text.matchAll(CITED)) {
      const numbers = found[1].split(",").map(Number);
      if (!numbers.every((one) => this.#isSource(one))) continue;
      this.#place.append(text.slice(from, found.index), ...numbers.map((one) => this.#pill(one)));
      from = found.index + found[0].length;
    }
    if (from < text.length) this.#place.append(text.slice(from));
  }

  #isSource(one) {
    return one >= 1 && one <= this.#known();
  }

  #pill(one) {
    const label = `Open source ${one}`;
    const pill = el("button", { type: "button", class: "pill", "aria-label": label, text: one });
    pill.onclick = () => this.#open(one, before(pill));
    return pill;
  }
}

/** The paragraph up to there: the text that cites that source. */
function before(pill) {
  let text = "";
  for (let node = pill.previousSibling; node && !text.includes("\n"); node = node.previousSibling) {
    if (node.nodeType === Node.TEXT_NODE) text = node.data + text;
  }
  return text.slice(text.lastIndexOf("\n") + 1);
}

/** The level of confidence, its score beside the thresholds, and what lowered it. */
export function confidence({ level, score, thresholds, because }, withheld) {
  const said = `score ${number(score)}; high from ${number(thresholds.high)}, medium from ${number(thresholds.medium)}`;
  return el(
    "p",
    { class: "confidence" },
    el("span", { class: `level ${level}`, text: `${level} confidence` }),
    scale(score, thresholds, `Scale of confidence: ${said}`),
    el("span", { class: "quiet", text: withheld ? `${said}: too low for an answer` : said }),
    ...because.slice(1).map((reason) => el("span", { class: "quiet", text: reason })),
  );
}

function scale(score, { high, medium }, label) {
  const at = (value) => 4 + 112 * Math.min(1, Math.max(0, value));
  const zone = (from, to, name) => svg("rect", { x: at(from), y: 5, width: at(to) - at(from), height: 6, class: name });
  return svg(
    "svg",
    { viewBox: "0 0 120 16", class: "scale", role: "img", "aria-label": label },
    zone(0, medium, "low"),
    zone(medium, high, "medium"),
    zone(high, 1, "high"),
    svg("circle", { cx: at(score), cy: 8, r: 4.5, class: "dot" }),
  );
}

/** The stages of an answer; `first` is what this page waited for the first word. */
export function timing(metadata, usage, first) {
  const { retrieval_latency_ms: retrieval, generation_latency_ms: generation, latency_ms: total } = metadata;
  const rest = Math.max(0, total - retrieval - generation);
  const stage = (name, taken) =>
    el("li", {}, el("span", { text: name }), bar(taken / Math.max(1, total)), el("span", { class: "figure", text: milliseconds(taken) }));
  const tokens = `${usage.prompt_tokens.toLocaleString("en")} tokens read, of them ${usage.retrieval_tokens.toLocaleString("en")} of passages, ${usage.completion_tokens.toLocaleString("en")} written`;
  return el(
    "details",
    { class: "timing" },
    el("summary", { text: `${milliseconds(total)} on the server; first word here after ${milliseconds(first)}` }),
    el("ul", { class: "stages" }, stage("find", retrieval), stage("write", generation), stage("judge and keep", rest)),
    el("p", { class: "quiet", text: [writer(metadata), !metadata.extractive && usage.total_tokens > 0 && tokens].filter(Boolean).join("; ") }),
  );
}

function writer({ withheld, extractive, model }) {
  if (withheld) return "no answer was written";
  return extractive ? "no model: the documents' own sentences" : `written by ${model}`;
}

/** The sources of an answer, by their numbers. */
export function sources(place, found, open) {
  const isAmbiguous = (source) => found.some((other) => other.title === source.title && other.document_id !== source.document_id);
  const titleOf = (source) => (source.collection_name && isAmbiguous(source) ? `${source.title} (${source.collection_name})` : source.title);
  const one = (source, index) =>
    el(
      "li",
      {},
      el("button", { type: "button", class: "source", onclick: () => open(index + 1) }, el("b", { text: index + 1 }), ` ${titleOf(source)}`),
    );
  show(place, ...found.map(one));
}
