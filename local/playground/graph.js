// A picture of what the graph knows around the names in a question, and the same in words.

import { el, show, svg } from "./dom.js";

const SIZE = 420;
const CENTRE = SIZE / 2;
const MOST = 16;

/** Fills a place with a retrieval's graph; `open` is called with the id of a chunk that says so. */
export function graph(place, answer, open) {
  if (!answer.graph) {
    show(place, el("p", { class: "quiet", text: "The documents say nothing about how names in this question are connected." }));
    return;
  }
  const entities = [...answer.graph.entities].sort((a, b) => b.seed - a.seed || b.weight - a.weight).slice(0, MOST);
  const at = placed(entities);
  const edges = answer.graph.edges.filter((edge) => at.has(edge.source) && at.has(edge.target));
  const names = new Map(entities.map((entity) => [entity.id, entity.name]));
  show(
    place,
    picture(entities, edges, at, names),
    answer.graph_context && el("p", { text: answer.graph_context }),
    el("h2", { text: "Connections" }),
    el("ul", { class: "rows" }, ...edges.map((edge) => connection(edge, names, open))),
  );
}

/** Named ones in the middle, the others around them. */
function placed(entities) {
  const rings = [entities.filter((entity) => entity.seed), entities.filter((entity) => !entity.seed)];
  const radii = [rings[0].length > 1 ? 62 : 0, 158];
  const at = new Map();
  rings.forEach((ring, which) =>
    ring.forEach((entity, index) => {
      const angle = (2 * Math.PI * index) / ring.length - Math.PI / 2;
      at.set(entity.id, [CENTRE + radii[which] * Math.cos(angle), CENTRE + radii[which] * Math.sin(angle)]);
    }),
  );
  return at;
}

function picture(entities, edges, at, names) {
  const line = (edge) => {
    const [[x1, y1], [x2, y2]] = [at.get(edge.source), at.get(edge.target)];
    const kind = edge.type === "RELATED_TO" ? "edge faint" : "edge";
    return svg("line", { x1, y1, x2, y2, class: kind }, svg("title", { text: sentence(edge, names) }));
  };
  const node = (entity) => {
    const [x, y] = at.get(entity.id);
    const radius = entity.seed ? 9 : 4 + 5 * entity.weight;
    const anchor = x < CENTRE - 40 ? "end" : x > CENTRE + 40 ? "start" : "middle";
    const beside = anchor === "end" ? -radius - 4 : anchor === "start" ? radius + 4 : 0;
    const below = anchor === "middle" ? (y < CENTRE ? -radius - 5 : radius + 13) : 4;
    return svg(
      "g",
      { class: entity.seed ? "node seed" : "node" },
      svg("circle", { cx: x, cy: y, r: radius }, svg("title", { text: `${entity.name}: ${entity.type}` })),
      svg("text", { x: x + beside, y: y + below, "text-anchor": anchor, text: shortened(entity.name) }),
    );
  };
  const label = `${entities.length} names and ${edges.length} connections, listed below`;
  return svg(
    "svg",
    { viewBox: `-90 0 ${SIZE + 180} ${SIZE}`, class: "graph", role: "img", "aria-label": label },
    ...edges.map(line),
    ...entities.map(node),
  );
}

const shortened = (name) => (name.length > 22 ? `${name.slice(0, 21)}…` : name);

function sentence(edge, names) {
  const how = edge.type === "RELATED_TO" ? "named together with" : edge.type.toLowerCase().replaceAll("_", " ");
  return `${names.get(edge.source)}: ${how} ${names.get(edge.target)}`;
}

function connection(edge, names, open) {
  const [first] = edge.evidence;
  const said = sentence(edge, names);
  return el(
    "li",
    {},
    el("span", { text: said }),
    first && el("button", { type: "button", class: "plain", "aria-label": `Open the passage: ${said}`, text: "passage", onclick: () => open(first) }),
  );
}
