"""The graph in words, a sentence an edge, for who reads it beside the passages: a person or a model."""

from shared.types import Edge, Graph

# In characters: as much as two or three passages.
MOST = 1_200
RELATED = "RELATED_TO"
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
    """The edges as sentences, the surest first, and what is only named together behind all that is said: as
    many as there is room for. Empty where there is nothing."""
    names = {(entity.org_id, entity.id): " ".join(entity.name.split()) for entity in graph.entities}
    said: list[str] = []
    length = 0
    for edge in sorted(graph.edges, key=lambda edge: (edge.type == RELATED, -edge.confidence)):
        ends = [names.get((edge.org_id, end)) for end in (edge.source, edge.target)]
        if None in ends:
            continue
        source, target = ends
        sentence = f"{source} {reads(edge)} {target}."
        length += len(sentence) + 1
        # (The last blank is not written.)
        if length > MOST + 1:
            break
        said.append(sentence)
    return " ".join(dict.fromkeys(said))


def reads(edge: Edge) -> str:
    """A type between the names of its ends: OWNED_BY is "is owned by", DEPENDS_ON "depends on"."""
    if known := _READ.get(edge.type):
        return known
    words = edge.type.lower().split("_")
    # depends on, uses, has; but: owned by, part of, located in.
    is_verb = words[0].endswith("s") and not words[0].endswith("ss")
    return " ".join(words if is_verb or words[-1] not in _JOINTS else ["is", *words])
