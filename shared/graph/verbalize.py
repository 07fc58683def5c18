"""Sentences for the edges of a graph, for prompts and for people."""

from collections.abc import Iterable

from shared.types import Edge, Graph

# As long as two or three passages.
MAX_CHARACTERS = 1_200
RELATED = "RELATED_TO"
# Edges between names that only occur together, without those of kinds that say little.
MAX_RELATED = 8
_EXCLUDED_KINDS = frozenset({"date", "identifier", "email"})
# Predicates that do not follow from the words of their type.
_PREDICATES = {
    RELATED: "is named together with",
    "ALIAS_OF": "is another name of",
    "REPORTS_TO": "reports to",
    "MEMBER_OF": "is a member of",
    "BORN_IN": "was born in",
    "CHILD_OF": "is a child of",
    "PARENT_OF": "is a parent of",
    "SPOUSE_OF": "is married to",
    "SIBLING_OF": "is a sibling of",
    "CAPITAL_OF": "is the capital of",
    "SUBSIDIARY_OF": "is a subsidiary of",
}
# A type that ends with one of these needs "is": is located in.
_PREPOSITIONS = frozenset(
    {"a", "an", "as", "at", "by", "for", "from", "in", "into", "of", "on", "to", "with"}
)


def graph_context(graph: Graph) -> str:
    """As many edges as fit, as sentences: stated relations by descending confidence, then RELATED_TO. Empty
    for a graph without edges."""
    excluded_ids = {
        (item.org_id, item.id) for item in graph.entities if item.kind in _EXCLUDED_KINDS and not item.is_seed
    }
    names = {(entity.org_id, entity.id): " ".join(entity.name.split()) for entity in graph.entities}
    sentences: list[str] = []
    length = 0
    stated = [edge for edge in graph.edges if edge.type != RELATED]
    related = [
        edge
        for edge in graph.edges
        if edge.type == RELATED
        and excluded_ids.isdisjoint({(edge.org_id, edge.source), (edge.org_id, edge.target)})
    ]
    for edge in (*_surest_first(stated), *_surest_first(related)[:MAX_RELATED]):
        ends = [names.get((edge.org_id, end)) for end in (edge.source, edge.target)]
        if None in ends:
            continue
        source, target = ends
        sentence = f"{source} {predicate(edge)} {target}."
        length += len(sentence) + 1
        # The last sentence has no space behind it.
        if length > MAX_CHARACTERS + 1:
            break
        sentences.append(sentence)
    return " ".join(dict.fromkeys(sentences))


def _surest_first(edges: Iterable[Edge]) -> list[Edge]:
    return sorted(edges, key=lambda edge: -edge.confidence)


def predicate(edge: Edge) -> str:
    """The words between two names: "is owned by" for OWNED_BY, "depends on" for DEPENDS_ON."""
    if phrase := _PREDICATES.get(edge.type):
        return phrase
    words = edge.type.lower().split("_")
    # depends on, uses, has; but: owned by, part of, located in.
    is_verb = words[0].endswith("s") and not words[0].endswith("ss")
    return " ".join(words if is_verb or words[-1] not in _PREPOSITIONS else ["is", *words])
