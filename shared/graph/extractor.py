"""What the chunks of one document name, and how they say it is related. Pure, and linear in the text."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from shared.graph.alias_resolution import AliasMap
from shared.graph.capitalized_names import CapitalizedNames
from shared.graph.cjk_names import unspaced_of
from shared.graph.date_entities import dates_of
from shared.graph.identifier_entities import marks_of
from shared.graph.line_relations import told_by
from shared.graph.mentions import HIDDEN, Mention, hide
from shared.graph.name_folding import fold
from shared.graph.quoted_names import quoted_of
from shared.graph.relations import relations_of
from shared.graph.structured_lines import LineRelation, lines_of
from shared.graph.title_subject import subject_of
from shared.graph.tokens import Evidence, tokens_of
from shared.graph.types import MOST_NAMES, MOST_RELATIONS, Extraction, Name, Relation, is_name

_SURROGATES = re.compile("[\ud800-\udfff\ue000-\uf8ff]")
# Longer ones are no chunks: what is behind is not read.
_MOST_LETTERS = 500_000


def extract(title: str, chunks: Sequence[str]) -> list[Extraction]:
    """One for each chunk. The order of names is the text's, that of relations as they are said."""
    title = _readable(title)
    texts = [_readable(chunk) for chunk in chunks]
    subject = subject_of(title, texts[0] if texts else "")
    dates = [dates_of(text) for text in texts]
    relation_lines = [lines_of(hide(text, spots)) for text, spots in zip(texts, dates, strict=True)]
    certain = [_certain_mentions(*each, subject) for each in zip(texts, dates, relation_lines, strict=True)]
    hidden = [hide(text, spots) for text, spots in zip(texts, certain, strict=True)]
    tokens = [tokens_of(text) for text in hidden]
    evidence = Evidence.of(tokens, subject.name if subject else "")
    mentions: list[list[Mention]] = []
    for text, spots, words in zip(hidden, certain, tokens, strict=True):
        new_mentions = [*CapitalizedNames(text, words, evidence).spots(), *unspaced_of(text)]
        mentions.append(_apart([*spots, *new_mentions]))
    aliases = AliasMap((spot for spots in mentions for spot in spots if not spot.nested), subject)
    return [
        _named(text, [_resolved(spot, aliases) for spot in spots], lines, aliases, subject, first=place == 0)
        for place, (text, spots, lines) in enumerate(zip(texts, mentions, relation_lines, strict=True))
    ]


def _readable(text: str) -> str:
    """As long, without half characters, and without those that stand for names in sentences."""
    return _SURROGATES.sub("\ufffd", text[:_MOST_LETTERS])


def _certain_mentions(
    text: str, dates: list[Mention], relation_lines: list[LineRelation], subject: Mention | None
) -> list[Mention]:
    """What is named by its form, by a line of its own, by the title, or within quotation marks."""
    spots = [
        *dates,
        *(spot for line in relation_lines for spot in (line.subject, *line.objects) if spot is not None),
    ]
    rest = hide(text, spots)
    spots += marks_of(rest)
    rest = hide(text, spots)
    if subject is not None:
        spots += _titled(rest, subject)
        rest = hide(text, spots)
    # What is hidden within quotation marks belongs to the name.
    return [*spots, *(replace(spot, name=text[spot.start : spot.end]) for spot in quoted_of(rest))]


def _titled(text: str, subject: Mention) -> Iterable[Mention]:
    """Where the text says the title as it stands."""
    start = text.find(subject.name)
    while start >= 0:
        end = start + len(subject.name)
        if not (text[start - 1 : start].isalnum() or text[end : end + 1].isalnum()):
            yield Mention(start, end, subject.name, subject.kind)
        start = text.find(subject.name, end)


def _apart(spots: list[Mention]) -> list[Mention]:
    """In the order of the text; those with nothing of a name, and those within others, are left out."""
    mentions: list[Mention] = []
    reached = 0
    for spot in sorted(spots, key=lambda spot: (spot.start, -spot.end)):
        if not is_name(spot.name) or HIDDEN in spot.name or (spot.start < reached and not spot.nested):
            continue
        if not spot.nested:
            reached = max(reached, spot.end)
        mentions.append(spot)
    return mentions


def _resolved(spot: Mention, aliases: AliasMap) -> Mention:
    if spot.nested:
        return spot
    whole = aliases.whole(spot)
    kind = spot.kind if whole.kind == "name" else whole.kind
    if whole.name == spot.name and kind == spot.kind:
        return spot
    return replace(spot, name=whole.name, kind=kind)


def _named(
    text: str,
    spots: list[Mention],
    lines: list[LineRelation],
    aliases: AliasMap,
    subject: Mention | None,
    *,
    first: bool,
) -> Extraction:
    relations, kinds = relations_of(text, spots, subject)
    relations += told_by(lines, spots, aliases, subject)
    names: dict[str, list[Mention]] = {}
    for spot in spots:
        names.setdefault(fold(spot.name), []).append(spot)
    title = fold(subject.name) if subject else ""
    by_name = dict(list(names.items())[:MOST_NAMES])
    return Extraction(
        tuple(
            _name(text, folded, mentions, kinds, folded == title, first)
            for folded, mentions in by_name.items()
        ),
        tuple(_bounded(relations, by_name.keys() | {title})),
    )


def _bounded(relations: Iterable[Relation], names: set[str]) -> list[Relation]:
    """Each once, at its surest, and between names that are kept."""
    best: dict[tuple[str, str, str], Relation] = {}
    for relation in relations:
        subject, other = fold(relation.subject), fold(relation.object)
        if subject == other or not {subject, other} <= names:
            continue
        key = (subject, relation.type, other)
        if key not in best or best[key].confidence < relation.confidence:
            best[key] = relation
    return list(best.values())[:MOST_RELATIONS]


def _name(
    text: str, folded: str, spots: list[Mention], kinds: dict[str, str], titled: bool, first: bool
) -> Name:
    surfaces = tuple(dict.fromkeys(text[spot.start : spot.end] for spot in spots))
    kind = spots[0].kind if spots[0].kind != "name" else kinds.get(folded, "name")
    return Name(spots[0].name, kind, surfaces[:20], _weight(spots, kind, titled, first))


def _weight(spots: list[Mention], kind: str, titled: bool, first: bool) -> float:
    """The title weighs most; then what is said early and often; dates, which many texts share, little."""
    if titled:
        return 1.0
    early = 0.2 if spots[0].start < 200 else 0.1 * (spots[0].start < 600)
    weight = 0.3 + early + 0.1 * min(3, len(spots) - 1) + 0.1 * first
    return min(1.0, weight) * (0.4 if kind == "date" else 0.6 if spots[0].nested else 1.0)
