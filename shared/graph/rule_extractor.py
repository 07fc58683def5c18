"""Extraction of entities and relations by rules: linear in the text, without I/O."""

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import replace

from shared.graph.alias_resolution import AliasMap
from shared.graph.capitalization import DocumentWords, tokenize
from shared.graph.capitalized_names import CapitalizedNames
from shared.graph.code_blocks import without_code_blocks
from shared.graph.document_subject import sender_of_mail, subjects_of_opening, title_subject
from shared.graph.identifier_entities import identifiers_in
from shared.graph.mentions import HIDDEN, Mention, hide
from shared.graph.name_folding import fold
from shared.graph.quoted_names import quoted_names_in
from shared.graph.relation_extraction import argument_kinds, relations_in
from shared.graph.relation_lines import relation_lines_in, relations_of_lines
from shared.graph.types import MAX_NAMES, MAX_RELATIONS, MAX_SURFACES, Extraction, Name, Relation, is_name

# The title occurs here in a text that is about its title.
_OPENING_CHARACTERS = 400
_SURROGATES = re.compile("[\ud800-\udfff\ue000-\uf8ff]")
# Text behind this position of a chunk is not read.
_MAX_CHARACTERS = 500_000


def extract(title: str, chunks: Sequence[str]) -> list[Extraction]:
    """An extraction for each chunk of one document. Names and relations are in the order of the text."""
    title = _readable(title)
    texts = [_readable(chunk) for chunk in chunks]
    opening = texts[0] if texts else ""
    subject = title_subject(title, opening)
    subjects = sender_of_mail(opening)
    # Where the title does not name the subject, the first lines may.
    if subject is None or subject.name not in opening[:_OPENING_CHARACTERS]:
        subjects = [*subjects, *subjects_of_opening(opening)]
    read = [
        _Chunk(text, prose, subject, [] if index else subjects)
        for index, (text, prose) in enumerate(zip(texts, without_code_blocks(texts), strict=True))
    ]
    tokens = (token for chunk in read for token in chunk.tokens)
    document_words = DocumentWords.of(
        "\n".join(chunk.rest for chunk in read), tokens, subject.name if subject else ""
    )
    mentions = [chunk.mentions(document_words) for chunk in read]
    aliases = AliasMap((mention for each in mentions for mention in each if not mention.is_nested), subject)
    return [
        chunk.extraction([aliases.resolved(mention) for mention in each], aliases, is_first=chunk is read[0])
        for chunk, each in zip(read, mentions, strict=True)
    ]


def _readable(text: str) -> str:
    """The text with other characters for surrogates and for placeholders (placeholder_sentences.py)."""
    return _SURROGATES.sub("\ufffd", text[:_MAX_CHARACTERS])


class _Chunk:
    """A chunk, its names by their form, and the rest of its text. `subject` is that of the title, `subjects`
    those of the text."""

    def __init__(self, text: str, prose: str, subject: Mention | None, subjects: Sequence[Mention]) -> None:
        self._text, self._prose, self._subject, self._subjects = text, prose, subject, subjects
        self._lines = [*relation_lines_in(prose)]
        mentions = [*subjects]
        mentions += (
            name for line in self._lines for name in (line.subject, *line.objects) if name is not None
        )
        mentions += identifiers_in(hide(text, mentions))
        if subject is not None:
            mentions += _title_mentions(hide(text, mentions), subject)
        # A quoted name contains the names that are hidden inside it.
        quoted = quoted_names_in(hide(text, mentions))
        mentions += [replace(mention, name=text[mention.start : mention.end]) for mention in quoted]
        self._mentions = mentions
        self.rest = hide(text, mentions)
        self.tokens = tokenize(self.rest)

    def mentions(self, document_words: DocumentWords) -> list[Mention]:
        """The valid mentions in the order of the text; of two that overlap the first, or the longer one."""
        mentions = [*self._mentions, *CapitalizedNames(self.rest, self.tokens, document_words).mentions()]
        chosen: list[Mention] = []
        position = 0
        for mention in sorted(mentions, key=lambda mention: (mention.start, -mention.end)):
            if not is_name(mention.name) or HIDDEN in mention.name:
                continue
            # Rosa Keane <rosa@example.com> is one name.
            is_address = mention.kind == "email" and self._text[position : mention.start].strip(' "') == "<"
            if not mention.is_nested:
                if mention.start < position:
                    continue
                position = mention.end
            person = chosen[-1] if is_address and chosen else mention
            chosen.append(replace(mention, name=person.name, kind=person.kind))
        return chosen

    def extraction(self, mentions: Sequence[Mention], aliases: AliasMap, is_first: bool) -> Extraction:
        """The names of these mentions, and the relations of the chunk's prose."""
        relations = [
            *relations_in(self._prose, mentions, self._subject if is_first else None),
            *relations_of_lines(self._lines, mentions, aliases, self._subject),
        ]
        kinds = argument_kinds(relations)
        by_name: dict[str, list[Mention]] = {}
        for mention in mentions:
            by_name.setdefault(fold(mention.name), []).append(mention)
        by_name = dict(list(by_name.items())[:MAX_NAMES])
        title = fold(self._subject.name) if self._subject else ""
        subjects = {title, *(fold(mention.name) for mention in self._subjects)}
        names = [
            self._name(each, kinds.get(folded, "name"), folded in subjects, is_first)
            for folded, each in by_name.items()
        ]
        return Extraction(tuple(names), tuple(_distinct(relations, by_name.keys() | {title})))

    def _name(self, mentions: Sequence[Mention], kind: str, is_subject: bool, is_first_chunk: bool) -> Name:
        first = mentions[0]
        surfaces = tuple(dict.fromkeys(self._text[mention.start : mention.end] for mention in mentions))
        early = 0.2 if first.start < 200 else 0.1 * (first.start < 600)
        weight = min(1.0, 0.3 + early + 0.1 * min(3, len(mentions) - 1) + 0.1 * is_first_chunk)
        weight = 1.0 if is_subject else weight * (0.6 if first.is_nested else 1.0)
        return Name(first.name, first.kind if first.kind != "name" else kind, surfaces[:MAX_SURFACES], weight)


def _title_mentions(text: str, subject: Mention) -> Iterator[Mention]:
    for match in re.finditer(rf"(?<![^\W_]){re.escape(subject.name)}(?![^\W_])", text):
        yield Mention(match.start(), match.end(), subject.name, subject.kind)


def _distinct(relations: Iterable[Relation], names: Set[str]) -> list[Relation]:
    """Each relation between two different ones of the folded names once."""
    distinct: dict[tuple[str, str, str], Relation] = {}
    for relation in relations:
        subject, other = fold(relation.subject), fold(relation.object)
        if subject != other and {subject, other} <= names:
            distinct.setdefault((subject, relation.type, other), relation)
    return list(distinct.values())[:MAX_RELATIONS]
