"""Sentences for the edges of a graph, for prompts and for people."""

from collections.abc import Iterable

from shared.types import Edge, Graph

# The length of two or three passages.
MAX_CHARACTERS = 1_200
RELATED = "RELATED_TO"
# Edges between names that only occur together, without those of kinds that say little.
MAX_RELATED = 8
_EXCLUDED_KINDS = frozenset({"identifier", "email"})
# Predicates that do not follow from the words of their type.
_PREDICATES = {
    RELATED: "is named together with",
    "ALIAS_OF": "is another name of",
    "BORN_IN": "was born in",
    "PART_OF": "is part of",
}
# A type that ends with one of these needs "is": is located in.
_PREPOSITIONS = frozenset(
    {"a", "an", "as", "at", "by", "for", "from", "in", "into", "of", "on", "to", "with"}
)


def graph_context(graph: Graph) -> str:
    """As many edges as fit, as sentences: stated relations by descending confidence, then RELATED_TO. Empty
    for a graph without edges."""
    entities = {(entity.org_id, entity.id): entity for entity in graph.entities}
    stated, related = [], []
    for edge in sorted(graph.edges, key=lambda edge: -edge.confidence):
        source, target = (entities.get((edge.org_id, end)) for end in (edge.source, edge.target))
        if source is None or target is None:
            continue
        sentence = f"{' '.join(source.name.split())} {predicate(edge)} {' '.join(target.name.split())}."
        if edge.type != RELATED:
            stated.append(sentence)
        elif all(end.is_seed or end.kind not in _EXCLUDED_KINDS for end in (source, target)):
            related.append(sentence)
    return _joined(dict.fromkeys([*stated, *related[:MAX_RELATED]]))


def _joined(sentences: Iterable[str]) -> str:
    """The first sentences that fit."""
    text = ""
    for sentence in sentences:
        longer = f"{text} {sentence}".strip()
        if len(longer) > MAX_CHARACTERS:
            break
        text = longer
    return text


def predicate(edge: Edge) -> str:
    """The words between two names: "is owned by" for OWNED_BY, "depends on" for DEPENDS_ON."""
    if phrase := _PREDICATES.get(edge.type):
        return phrase
    words = edge.type.lower().split("_")
    # depends on, uses, has; but: owned by, located in, member of.
    if (words[0].endswith("s") and not words[0].endswith("ss")) or words[-1] not in _PREPOSITIONS:
        return " ".join(words)
    return " ".join(["is a" if words[-1] == "of" else "is", *words])
