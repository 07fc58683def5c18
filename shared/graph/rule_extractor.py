"""Extraction of entities and relations by rules: linear in the text, without I/O."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from shared.graph.alias_resolution import AliasMap
from shared.graph.capitalized_names import CapitalizedNames
from shared.graph.cjk_names import cjk_names_in
from shared.graph.code_blocks import without_code_blocks
from shared.graph.date_entities import dates_in
from shared.graph.document_subject import defined_subject, stated_subjects, title_subject
from shared.graph.identifier_entities import identifiers_in
from shared.graph.mentions import HIDDEN, Mention, hide
from shared.graph.name_folding import fold
from shared.graph.quoted_names import quoted_names_in
from shared.graph.relation_extraction import relations_in
from shared.graph.table_key_and_codeowners_relations import (
    LineRelation,
    relation_lines_in,
    relations_of_lines,
)
from shared.graph.types import MAX_NAMES, MAX_RELATIONS, MAX_SURFACES, Extraction, Name, Relation, is_name
from shared.graph.words_and_capitals import CaseEvidence, tokenize

# Marks and an article.
_BEFORE_SUBJECT = re.compile(r"[\W_]*(?:(?:the|a|an|der|die|das|le|la|les|el|los|las)\W+)?", re.IGNORECASE)
# The title occurs here in a text that is about its title.
_OPENING_CHARACTERS = 400
_SURROGATES = re.compile("[\ud800-\udfff\ue000-\uf8ff]")
# Text behind this place of a chunk is not read.
_MAX_CHARACTERS = 500_000


def extract(title: str, chunks: Sequence[str]) -> list[Extraction]:
    """An extraction for each chunk of one document. Names and relations are in the order of the text."""
    title = _readable(title)
    texts = [_readable(chunk) for chunk in chunks]
    subject = title_subject(title, texts[0] if texts else "")
    prose = [*without_code_blocks(texts)]
    dates = [[*dates_in(text)] for text in texts]
    relation_lines = [[*relation_lines_in(hide(*each))] for each in zip(prose, dates, strict=True)]
    certain = [_certain_mentions(*each, subject) for each in zip(texts, dates, relation_lines, strict=True)]
    stated = stated_subjects(texts[0]) if texts else []
    if stated:
        certain[0] = [*stated, *_apart_from(stated, certain[0])]
    # Where the title does not name the subject, the first words may.
    is_titled = not texts or (subject is not None and subject.name in texts[0][:_OPENING_CHARACTERS])
    defined = [] if is_titled else defined_subject(texts[0])
    if defined:
        certain[0] = [*defined, *certain[0]]
    rests = [hide(*each) for each in zip(texts, certain, strict=True)]
    tokens = [tokenize(rest) for rest in rests]
    words = (token for each in tokens for token in each)
    evidence = CaseEvidence.of("\n".join(rests), words, subject.name if subject else "")
    mentions = [
        _without_overlaps([*known, *CapitalizedNames(rest, words, evidence).mentions(), *cjk_names_in(rest)])
        for rest, known, words in zip(rests, certain, tokens, strict=True)
    ]
    if not is_titled and not defined and mentions[0] and _opens(texts[0], mentions[0][0]):
        defined = mentions[0][:1]
    defined = [*stated, *defined]
    aliases = AliasMap((mention for each in mentions for mention in each if not mention.is_nested), subject)
    return [
        _extraction(
            (text, prose_of_text),
            [_resolved(mention, aliases) for mention in each],
            lines,
            aliases,
            subject,
            [] if index else defined,
            index == 0,
        )
        for index, (text, prose_of_text, each, lines) in enumerate(
            zip(texts, prose, mentions, relation_lines, strict=True)
        )
    ]


def _readable(text: str) -> str:
    """The text with other characters for surrogates and for placeholders (sentences_with_placeholders.py)."""
    return _SURROGATES.sub("\ufffd", text[:_MAX_CHARACTERS])


def _certain_mentions(
    text: str, dates: list[Mention], relation_lines: list[LineRelation], subject: Mention | None
) -> list[Mention]:
    """Names by their form, in structured lines, in the title or in quotation marks."""
    mentions = [
        *dates,
        *(name for line in relation_lines for name in (line.subject, *line.objects) if name is not None),
    ]
    rest = hide(text, mentions)
    mentions += identifiers_in(rest)
    rest = hide(text, mentions)
    if subject is not None:
        mentions += _title_mentions(rest, subject)
        rest = hide(text, mentions)
    # A quoted name contains the names that are hidden inside it.
    quoted = (replace(mention, name=text[mention.start : mention.end]) for mention in quoted_names_in(rest))
    return [*mentions, *quoted]


def _title_mentions(text: str, subject: Mention) -> Iterator[Mention]:
    start = text.find(subject.name)
    while start >= 0:
        end = start + len(subject.name)
        if not (text[start - 1 : start].isalnum() or text[end : end + 1].isalnum()):
            yield Mention(start, end, subject.name, subject.kind)
        start = text.find(subject.name, end)


def _apart_from(chosen: list[Mention], mentions: list[Mention]) -> Iterator[Mention]:
    """The mentions that overlap none of the chosen ones."""
    for mention in mentions:
        if all(mention.end <= each.start or each.end <= mention.start for each in chosen):
            yield mention


def _without_overlaps(mentions: list[Mention]) -> list[Mention]:
    """The valid mentions in the order of the text; of two that overlap the first, or the longer one."""
    chosen: list[Mention] = []
    position = 0
    for mention in sorted(mentions, key=lambda mention: (mention.start, -mention.end)):
        if not is_name(mention.name) or HIDDEN in mention.name:
            continue
        if not mention.is_nested:
            if mention.start < position:
                continue
            position = max(position, mention.end)
        chosen.append(mention)
    return chosen


def _resolved(mention: Mention, aliases: AliasMap) -> Mention:
    if mention.is_nested:
        return mention
    full_name = aliases.resolve(mention)
    kind = mention.kind if full_name.kind == "name" else full_name.kind
    return replace(mention, name=full_name.name, kind=kind)


def _extraction(
    texts: tuple[str, str],
    mentions: list[Mention],
    lines: list[LineRelation],
    aliases: AliasMap,
    subject: Mention | None,
    defined: list[Mention],
    is_first_chunk: bool,
) -> Extraction:
    """The names of a chunk, given as its text and its prose, and the relations of its prose."""
    text, prose = texts
    relations, kinds = relations_in(prose, mentions, subject if is_first_chunk else None)
    relations += relations_of_lines(lines, mentions, aliases, subject)
    by_name: dict[str, list[Mention]] = {}
    for mention in mentions:
        by_name.setdefault(fold(mention.name), []).append(mention)
    title = fold(subject.name) if subject else ""
    subjects = {title, *(fold(mention.name) for mention in defined)}
    by_name = dict(list(by_name.items())[:MAX_NAMES])
    names = by_name.keys() | {title}
    between_names = (one for one in relations if {fold(one.subject), fold(one.object)} <= names)
    return Extraction(
        tuple(
            _name(text, each, kinds.get(folded, "name"), folded in subjects, is_first_chunk)
            for folded, each in by_name.items()
        ),
        tuple(_best_relations(between_names)),
    )


def _best_relations(relations: Iterable[Relation]) -> list[Relation]:
    """Each relation between two different names once, with its highest confidence."""
    best: dict[tuple[str, str, str], Relation] = {}
    for relation in relations:
        key = (fold(relation.subject), relation.type, fold(relation.object))
        if key[0] != key[2] and (key not in best or best[key].confidence < relation.confidence):
            best[key] = relation
    return list(best.values())[:MAX_RELATIONS]


def _opens(text: str, mention: Mention) -> bool:
    """Whether the text begins with the mention, but does not address it as a greeting does."""
    before, behind = text[: mention.start], text[mention.end : mention.end + 1]
    return mention.kind != "date" and _BEFORE_SUBJECT.fullmatch(before) is not None and behind != ","


def _name(
    text: str, mentions: list[Mention], inferred_kind: str, is_subject: bool, is_first_chunk: bool
) -> Name:
    first = mentions[0]
    surfaces = tuple(dict.fromkeys(text[mention.start : mention.end] for mention in mentions))
    kind = first.kind if first.kind != "name" else inferred_kind
    weight = 1.0
    if not is_subject:
        early = 0.2 if first.start < 200 else 0.1 * (first.start < 600)
        weight = min(1.0, 0.3 + early + 0.1 * min(3, len(mentions) - 1) + 0.1 * is_first_chunk)
        weight *= 0.4 if kind == "date" else 0.6 if first.is_nested else 1.0
    return Name(first.name, kind, surfaces[:MAX_SURFACES], weight)
