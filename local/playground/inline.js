// Inline Markdown (emphasis, code, links) as DOM nodes. Each text node is a slice of the source: a highlight, which is
// a range of the source, keeps its place.

import { el } from "./dom.js";

const SAFE_SCHEMES = new Set(["http:", "https:", "mailto:"]);
const TOKEN = /\\[!-/:-@[-`{-~]|`+|\*+|_+|~~|!?\[|<(?:https?:\/\/|mailto:)[^\s<>]{1,2000}>/g;
// Brackets, target, title. Its repetitions are bounded, and no text matches in two ways.
const LINK = /!?\[([^[\]]{0,500})\]\([ \t]{0,9}<?((?:[^\s<>()]|\([^\s<>()]{0,500}\)){1,2000})>?(?:[ \t]{1,9}(?:"[^"\n]{0,300}"|'[^'\n]{0,300}'))?[ \t]{0,9}\)/y;
const EMPHASIS = { "*": ["em"], "_": ["em"], "**": ["strong"], "__": ["strong"], "***": ["em", "strong"], "___": ["em", "strong"], "~~": ["del"] };
// Bounds of the work for a hostile text: emphasis that is open at once, characters of a code span.
const MAX_OPEN = 16;
const MAX_CODE = 2000;

/** A text, and the ranges of it that are highlighted, in order. */
export class Source {
  #spans;
  #span = 0;
  #gaps = [];
  #gap = 0;

  constructor(text, spans = []) {
    this.text = text;
    this.#spans = spans;
  }

  /** Ranges that slices leave out from now on, in order: the prefixes of the lines of a quote or a list. */
  leaveOut(gaps) {
    this.#gaps = gaps;
    this.#gap = 0;
  }

  /** The text nodes of a range, as a fragment. Ranges must be given in order. */
  slice(from, to) {
    const nodes = document.createDocumentFragment();
    for (let at = from; at < to; ) {
      while (this.#gaps[this.#gap]?.[1] <= at) this.#gap += 1;
      while (this.#spans[this.#span]?.[1] <= at) this.#span += 1;
      const [gap, span] = [this.#gaps[this.#gap], this.#spans[this.#span]];
      if (gap?.[0] <= at) {
        at = gap[1];
        continue;
      }
      const isMarked = span?.[0] <= at;
      const end = Math.min(to, gap?.[0] ?? to, (isMarked ? span[1] : span?.[0]) ?? to);
      const text = this.text.slice(at, end);
      nodes.append(isMarked ? el("mark", { tabindex: "-1", text }) : text);
      at = end;
    }
    return nodes;
  }
}

/** The nodes of a range of a source, as a fragment. There is no link within the label of a link. */
export function inline(source, from, to, isLabel = false) {
  return new Inline(source, from, to, isLabel).nodes();
}

class Inline {
  #source;
  #from;
  #text;
  // How far the source is written.
  #at;
  // Emphasis that is open, innermost last; the first frame is the range itself.
  #frames = [frame()];
  #isLabel;

  constructor(source, from, to, isLabel) {
    this.#source = source;
    this.#isLabel = isLabel;
    this.#from = this.#at = from;
    this.#text = source.text.slice(from, to);
  }

  nodes() {
    const token = new RegExp(TOKEN);
    for (let match = token.exec(this.#text); match; match = token.exec(this.#text)) {
      token.lastIndex = this.#take(match[0], match.index);
    }
    this.#write(this.#text.length);
    this.#flatten(0);
    return this.#frames[0].nodes;
  }

  /** Write the node that the token begins. Returns the place at which the next token may begin. */
  #take(token, start) {
    const end = start + token.length;
    if (token[0] === "\\") {
      this.#write(start);
      this.#skip(start + 1);
      return end;
    }
    if (token[0] === "`") return this.#code(token, start);
    if (token[0] === "<") return this.#link(start, token.slice(1, -1), end, () => this.#slice(start + 1, end - 1));
    if (token.endsWith("[")) return this.#bracket(token, start);
    if (token in EMPHASIS) this.#emphasis(token, start, end);
    return end;
  }

  #code(run, start) {
    const from = start + run.length;
    const to = from + closing(this.#text.slice(from, from + MAX_CODE), run);
    if (to < from) return from;
    this.#write(start);
    this.#put(el("code", {}, this.#slice(from, to)));
    this.#skip(to + run.length);
    return to + run.length;
  }

  #bracket(token, start) {
    LINK.lastIndex = start;
    const match = LINK.exec(this.#text);
    if (!match) return start + token.length;
    const end = LINK.lastIndex;
    const [from, to] = [start + token.length, start + token.length + match[1].length];
    if (token === "[") return this.#link(start, match[2], end, () => inline(this.#source, this.#from + from, this.#from + to, true));
    // An image is its description: the page loads nothing from elsewhere.
    this.#write(start);
    this.#put(this.#slice(from, to));
    this.#skip(end);
    return end;
  }

  /** Every link that may not be opened is shown as its source. */
  #link(start, target, end, label) {
    const href = this.#isLabel ? null : safe(target);
    if (!href) return end;
    this.#write(start);
    this.#put(el("a", { href, title: href, target: "_blank", rel: "noopener noreferrer nofollow" }, label()));
    this.#skip(end);
    return end;
  }

  #emphasis(run, start, end) {
    const [before, after] = [this.#text[start - 1] ?? " ", this.#text[end] ?? " "];
    const isWithinWord = run[0] === "_" && /[\p{L}\p{N}]/u.test(before) && /[\p{L}\p{N}]/u.test(after);
    if (isWithinWord) return;
    const open = this.#frames.findLastIndex((one) => one.run === run);
    if (open > 0 && /\S/.test(before)) {
      this.#write(start);
      this.#flatten(open);
      const { nodes } = this.#frames.pop();
      this.#put(EMPHASIS[run].reduceRight((inner, name) => el(name, {}, inner), nodes));
      this.#skip(end);
    } else if (/\S/.test(after)) {
      this.#write(start);
      this.#frames.push(frame(run, this.#slice(start, end)));
      this.#skip(end);
      if (this.#frames.length > MAX_OPEN) this.#unwrap(1);
    }
  }

  /** Close all frames inside of that one: their openers become text. */
  #flatten(open) {
    while (this.#frames.length > open + 1) this.#unwrap(this.#frames.length - 1);
  }

  #unwrap(which) {
    const [{ opener, nodes }] = this.#frames.splice(which, 1);
    this.#frames[which - 1].nodes.append(opener, nodes);
  }

  #put(node) {
    this.#frames.at(-1).nodes.append(node);
  }

  #slice(from, to) {
    return this.#source.slice(this.#from + from, this.#from + to);
  }

  #write(end) {
    const start = this.#at - this.#from;
    if (start < end) this.#put(this.#slice(start, end));
    this.#skip(end);
  }

  #skip(end) {
    this.#at = Math.max(this.#at, this.#from + end);
  }
}

const frame = (run = "", opener = document.createDocumentFragment()) => ({ run, opener, nodes: document.createDocumentFragment() });

/** Where the run of backticks ends a code span; negative where it does not. */
function closing(text, run) {
  for (const match of text.matchAll(/`+/g)) if (match[0] === run) return match.index;
  return -Infinity;
}

/** The address of a link that may be opened; null for every other scheme, for relative ones, and for one with a user name,
 * which may look like another host. */
function safe(target) {
  const url = URL.canParse(target) ? new URL(target) : null;
  return url && SAFE_SCHEMES.has(url.protocol) && !url.username && !url.password ? url.href : null;
}
