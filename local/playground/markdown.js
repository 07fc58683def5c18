// Markdown as DOM nodes: headings, paragraphs, lists, quotes, code, tables. HTML in it stays text.

import { el } from "./dom.js";
import { inline, Source } from "./inline.js";

const FENCE = /^ {0,3}(`{3,}|~{3,})[^`]*$/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]+|$)/;
const UNDERLINE = /^ {0,3}(=+|-+)[ \t]*$/;
const RULE = /^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])(?:[ \t]{1,4}(?=\S)|[ \t]*$)/;
const DELIMITERS = /^\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?$/;
// A longer line is no heading and no rule; a list or quote inside of so many others is text.
const MAX_MARKED_LINE = 1000;
const MAX_DEPTH = 8;

/** A fragment of the nodes of a text, with those ranges of it highlighted. */
export function markdown(text, spans = []) {
  return new Blocks(new Source(text, spans)).of(linesOf(text), 0);
}

/** The text that a reader sees, in one line. */
export function plain(text) {
  const place = el("div", {}, markdown(text));
  for (const block of place.querySelectorAll("p, h3, h4, h5, h6, li, th, td, pre")) block.append(" ");
  return place.textContent.replace(/\s+/g, " ").trim();
}

/** The ranges of the lines, without their ends. */
function linesOf(text) {
  const lines = [];
  for (let from = 0; from <= text.length; ) {
    const end = text.indexOf("\n", from);
    const to = end < 0 ? text.length : end;
    lines.push({ from, to });
    from = to + 1;
  }
  return lines;
}

const isShort = (text) => text.length <= MAX_MARKED_LINE;
const isRule = (text) => isShort(text) && RULE.test(text);

/** An item of a list; its first paragraph needs no space around it. */
function itemOf(nodes) {
  const first = nodes.firstChild;
  if (first?.localName === "p") {
    while (first.firstChild) first.before(first.firstChild);
    first.remove();
  }
  return el("li", {}, nodes);
}

class Blocks {
  #source;
  // The levels of the headings above: in the page none skips a level.
  #levels = [];

  constructor(source) {
    this.#source = source;
  }

  of(lines, depth) {
    const nodes = document.createDocumentFragment();
    for (let at = 0; at < lines.length; ) {
      if (this.#isBlank(lines[at])) at += 1;
      else at = this.#block(lines, at, depth, nodes);
    }
    return nodes;
  }

  /** Add the node of the block that begins at that line. Returns the line at which the next block begins. */
  #block(lines, at, depth, nodes) {
    const text = this.#text(lines[at]);
    if (FENCE.test(text)) return this.#fence(lines, at, nodes);
    if (isShort(text) && HEADING.test(text)) return this.#heading(lines, at, nodes);
    if (isRule(text)) return nodes.append(el("hr")), at + 1;
    if (depth < MAX_DEPTH && QUOTE.test(text)) return this.#quote(lines, at, depth, nodes);
    if (depth < MAX_DEPTH && ITEM.test(text)) return this.#list(lines, at, depth, nodes);
    if (this.#isTable(lines, at)) return this.#table(lines, at, nodes);
    return this.#paragraph(lines, at, depth, nodes);
  }

  #fence(lines, at, nodes) {
    const [, fence] = FENCE.exec(this.#text(lines[at]));
    const isEnd = (line) => {
      const text = this.#text(line).trim();
      return text.length >= fence.length && text === fence[0].repeat(text.length);
    };
    const start = at + 1;
    let end = start;
    while (end < lines.length && !isEnd(lines[end])) end += 1;
    const code = this.#joined(lines.slice(start, end), (from, to) => this.#source.slice(from, to));
    nodes.append(el("pre", {}, el("code", {}, code)));
    return end + 1;
  }

  #heading(lines, at, nodes) {
    const line = lines[at];
    const [prefix, marks] = HEADING.exec(this.#text(line));
    const title = this.#text(line).slice(prefix.length).trimEnd();
    const bare = title.replace(/(^|[ \t])#+$/, "").trimEnd();
    const from = line.from + prefix.length;
    nodes.append(this.#titled(marks.length, [{ from, to: from + bare.length }]));
    return at + 1;
  }

  #titled(level, lines) {
    while (this.#levels.at(-1) >= level) this.#levels.pop();
    this.#levels.push(level);
    // The page's own headings are h1 and h2.
    return el(`h${Math.min(6, 2 + this.#levels.length)}`, {}, this.#inline(lines));
  }

  #quote(lines, at, depth, nodes) {
    const body = [];
    for (; at < lines.length; at++) {
      const prefix = QUOTE.exec(this.#text(lines[at]));
      if (!prefix) break;
      body.push({ from: lines[at].from + prefix[0].length, to: lines[at].to });
    }
    nodes.append(el("blockquote", {}, this.of(body, depth + 1)));
    return at;
  }

  #list(lines, at, depth, nodes) {
    const [, , first] = ITEM.exec(this.#text(lines[at]));
    const isOrdered = first.length > 1;
    const start = isOrdered && parseInt(first, 10);
    const list = el(isOrdered ? "ol" : "ul", { start: start !== 1 && start });
    while (at < lines.length) {
      const text = this.#text(lines[at]);
      const item = ITEM.exec(text);
      if (!item || item[2].at(-1) !== first.at(-1) || isRule(text)) break;
      const [body, next] = this.#item(lines, at, item);
      list.append(itemOf(this.of(body, depth + 1)));
      at = next;
    }
    nodes.append(list);
    return at;
  }

  /** The lines of an item without their indentation, and where the next block begins. */
  #item(lines, at, [marker, indentation, sign]) {
    const width = marker.trimEnd() === marker ? indentation.length + sign.length + 1 : marker.length;
    const body = [{ from: Math.min(lines[at].from + width, lines[at].to), to: lines[at].to }];
    let next = at + 1;
    let wasBlank = false;
    for (; next < lines.length; next++) {
      const line = lines[next];
      const isBlank = this.#isBlank(line);
      const inner = isBlank ? { from: line.to, to: line.to } : this.#unindented(line, width);
      if (!inner && (wasBlank || ITEM.test(this.#text(line)) || this.#interrupts(lines, next))) break;
      body.push(inner ?? line);
      wasBlank = isBlank;
    }
    return [body, next];
  }

  /** The line without so much indentation, null where it has less. */
  #unindented(line, width) {
    let from = line.from;
    for (let column = 0; column < width; from++) {
      if (this.#source.text[from] === "\t") column += 4;
      else if (this.#source.text[from] === " ") column += 1;
      else return null;
    }
    return { from, to: line.to };
  }

  #isTable(lines, at) {
    const [head, delimiters] = [lines[at], lines[at + 1]];
    if (!delimiters || !this.#text(head).includes("|") || !DELIMITERS.test(this.#text(delimiters).trim())) return false;
    return this.#cells(head).length === this.#cells(delimiters).length;
  }

  #table(lines, at, nodes) {
    const [head, body] = [el("thead", {}, this.#row(lines[at], "th")), el("tbody")];
    for (at += 2; at < lines.length && this.#text(lines[at]).includes("|"); at++) body.append(this.#row(lines[at], "td"));
    // A wide one scrolls by itself, also by the keyboard.
    nodes.append(el("div", { class: "table", role: "group", "aria-label": "Table", tabindex: "0" }, el("table", {}, head, body)));
    return at;
  }

  #row(line, name) {
    const row = el("tr");
    for (const cell of this.#cells(line)) row.append(cell.from < cell.to ? el(name, {}, this.#inline([cell])) : el("td"));
    return row;
  }

  /** The ranges of a row's cells, without the space around them. */
  #cells(line) {
    const cells = [];
    const text = this.#text(line).trim();
    const offset = line.from + this.#text(line).indexOf(text);
    let from = text.startsWith("|") ? 1 : 0;
    for (const { 0: token, index } of text.matchAll(/\\.|\|/g)) {
      if (token !== "|" || index < from) continue;
      cells.push([from, index]);
      from = index + 1;
    }
    if (from < text.length) cells.push([from, text.length]);
    return cells.map(([start, end]) => {
      const cell = text.slice(start, end);
      const first = offset + start + cell.length - cell.trimStart().length;
      return { from: first, to: first + cell.trim().length };
    });
  }

  #paragraph(lines, at, depth, nodes) {
    let end = at + 1;
    for (; end < lines.length && !this.#isBlank(lines[end]); end++) {
      const underline = UNDERLINE.exec(this.#text(lines[end]));
      if (underline) {
        nodes.append(this.#titled(underline[1][0] === "=" ? 1 : 2, lines.slice(at, end)));
        return end + 1;
      }
      if (depth < MAX_DEPTH && this.#interrupts(lines, end)) break;
    }
    nodes.append(el("p", {}, this.#inline(lines.slice(at, end))));
    return end;
  }

  /** Whether the line begins another block in the middle of a paragraph. A wrapped line may begin with a number. */
  #interrupts(lines, at) {
    const text = this.#text(lines[at]);
    const item = ITEM.exec(text);
    if (item && item[0].trimEnd() !== text.trimEnd()) return item[2].length === 1 || parseInt(item[2], 10) === 1;
    if (FENCE.test(text) || QUOTE.test(text) || this.#isTable(lines, at)) return true;
    return isRule(text) || (isShort(text) && HEADING.test(text));
  }

  #inline(lines) {
    return this.#joined(lines, (from, to) => inline(this.#source, from, to));
  }

  /** The nodes of the lines from the first to the last, without the prefixes between them. */
  #joined(lines, nodesOf) {
    if (!lines.length) return null;
    const prefixes = lines.slice(1).map((line, before) => [lines[before].to + 1, line.from]);
    this.#source.leaveOut(prefixes.filter(([from, to]) => from < to));
    const nodes = nodesOf(lines[0].from, lines.at(-1).to);
    this.#source.leaveOut([]);
    return nodes;
  }

  #isBlank(line) {
    return this.#text(line).trim() === "";
  }

  #text(line) {
    return this.#source.text.slice(line.from, line.to);
  }
}
