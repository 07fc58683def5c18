"""The graph in words, a sentence an edge, for who reads it beside the passages: a person or a model."""

from collections.abc import Iterable

from shared.types import Edge, Graph

# In characters: as much as two or three passages.
MOST = 1_200
RELATED = "RELATED_TO"
# Of what is only named together so many are said, and none that is a moment or a number of something.
MOST_RELATED = 8
_EXCLUDED_KINDS = frozenset({"date", "identifier", "email"})
# How a type reads between two names, where its own words would not do.
_READ = {
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
# A word that ends like these is no verb: "is in", not "located".
_JOINTS = frozenset({"a", "an", "as", "at", "by", "for", "from", "in", "into", "of", "on", "to", "with"})


def graph_context(graph: Graph) -> str:
    """The edges as sentences, the surest first, and a few that are only named together behind all that is
    said: as many as there is room for. Empty where there is nothing."""
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
    for edge in (*_surest_first(stated), *_surest_first(related)[:MOST_RELATED]):
        ends = [names.get((edge.org_id, end)) for end in (edge.source, edge.target)]
        if None in ends:
            continue
        source, target = ends
        sentence = f"{source} {reads(edge)} {target}."
        length += len(sentence) + 1
        # (The last blank is not written.)
        if length > MOST + 1:
            break
        sentences.append(sentence)
    return " ".join(dict.fromkeys(sentences))


def _surest_first(edges: Iterable[Edge]) -> list[Edge]:
    return sorted(edges, key=lambda edge: -edge.confidence)


def reads(edge: Edge) -> str:
    """A type between the names of its ends: OWNED_BY is "is owned by", DEPENDS_ON "depends on"."""
    if phrase := _READ.get(edge.type):
        return phrase
    words = edge.type.lower().split("_")
    # depends on, uses, has; but: owned by, part of, located in.
    is_verb = words[0].endswith("s") and not words[0].endswith("ss")
    return " ".join(words if is_verb or words[-1] not in _JOINTS else ["is", *words])
