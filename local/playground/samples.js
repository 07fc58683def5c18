// The empty page: the first step, and sample questions to click.

import { byId, el, show } from "./dom.js";

const MOST = 4;
// Of a title that makes a readable question, in characters.
const LONGEST = 80;
const NO_DOCUMENTS = "There are no documents yet. Upload a file in the library, and ask about it.";

/** Fill the place. `questions` come first, then questions about the titles. What stays the same is not replaced: a click
 * on a button that is replaced between press and release is lost. */
export function introduce(place, { isEmpty, name, questions, titles }) {
  const filled = el("div", {}, ...(isEmpty ? [el("p", { text: NO_DOCUMENTS })] : introduction(name, questions, titles)));
  if (!place.firstElementChild?.isEqualNode(filled)) show(place, filled);
}

function introduction(name, questions, titles) {
  const samples = [...new Set([...questions, ...titles.filter(isReadable).map(questionAbout)])].slice(0, MOST);
  const items = samples.map((text) => el("li", {}, el("button", { type: "button", class: "sample", text, onclick: () => ask(text) })));
  return [
    el("p", { text: `Ask a question about ${name ?? "your documents"}.` }),
    items.length > 0 && el("ul", { class: "samples", "aria-label": "Sample questions" }, ...items),
  ];
}

function ask(question) {
  byId("question").value = question;
  byId("ask-form").requestSubmit();
}

/** Words, and no number or hash. */
const isReadable = (title) => title.length <= LONGEST && /\p{L}{3}/u.test(title) && !/[0-9a-f]{16}/i.test(title);

/** Without a suffix and other marks of a file name. */
const questionAbout = (title) => `What should I know about “${title.replace(/\.\w{1,5}$/, "").replaceAll("_", " ")}”?`;
