// The empty page: the first step, and sample questions to click.

import { el, show } from "./dom.js";

const MOST = 4;
// Of a title that makes a readable question, in characters.
const LONGEST = 80;

/** Fill the place. `questions` come first, then questions about the titles; `ask` is called with the question that is clicked. */
export function introduce(place, { isEmpty, name, questions, titles }, ask) {
  if (isEmpty) {
    show(place, el("p", { text: "There are no documents yet. Upload a file in the library, and ask about it." }));
    return;
  }
  const samples = [...new Set([...questions, ...titles.filter(isReadable).map(questionAbout)])].slice(0, MOST);
  const items = samples.map((text) => el("li", {}, el("button", { type: "button", class: "sample", text, onclick: () => ask(text) })));
  show(
    place,
    el("p", { text: `Ask a question about ${name ?? "your documents"}.` }),
    items.length > 0 && el("ul", { class: "samples", "aria-label": "Sample questions" }, ...items),
  );
}

/** Words, and no number or hash. */
const isReadable = (title) => title.length <= LONGEST && /\p{L}{3}/u.test(title) && !/[0-9a-f]{16}/i.test(title);

const questionAbout = (title) => `What does “${title.replace(/\.\w{1,5}$/, "")}” say?`;
