"""Validation of a model's reply against its chunk.

A reply is as untrusted as its chunk. A name is kept if the chunk or the title contains it; a relation if a
sentence, or two adjacent cells of a row, contain both names and a word of its type.
"""

import re
from collections.abc import Iterator, Mapping

from pydantic import BaseModel, Field, ValidationError

from shared.graph.name_folding import fold, folded_text, found_in, without_parenthesis
from shared.graph.relation_extraction import is_negated_or_hedged
from shared.graph.relation_words import types_named_in
from shared.graph.types import (
    KINDS,
    MAX_NAMES,
    MAX_RELATIONS,
    MAX_SURFACES,
    SENTENCE,
    Extraction,
    Name,
    Relation,
    best_relations,
    is_name,
    prominence,
)
from shared.text.normalize import has_invisible
from shared.text.sentences import sentences
from shared.text.stemming import is_unspaced

MAX_CHARACTERS = 200_000


class ReplyName(BaseModel):
    name: str
    kind: str = "name"
    spellings: list[str] = Field(default_factory=list)


class ReplyRelation(BaseModel):
    subject: str
    type: str
    object: str


class Reply(BaseModel):
    names: list[ReplyName]
    relations: list[ReplyRelation]


def parse_reply(text: str) -> Reply | None:
    """The reply without prose around it; None for a text without a valid reply."""
    if len(text) > MAX_CHARACTERS:
        return None
    try:
        return Reply.model_validate_json(text[text.find("{") : text.rfind("}") + 1])
    except ValidationError:
        return None


def check_reply(reply: Reply, title: str, text: str, full_names: Mapping[str, str]) -> Extraction:
    """The names and relations of the reply that the chunk or the title supports. `full_names`: the names in
    full by their folded short forms."""
    names: dict[str, Name] = {}
    # The names in full by each folded form, the title among them.
    forms = {fold(title): title} if fold(title) else {}
    sources = (text, folded_text(text)), (title, folded_text(title))
    for item in reply.names[:MAX_NAMES]:
        name = _supported_name(item.name, *sources)
        if name is None:
            continue
        full_name = full_names.get(fold(name), name)
        before = names.get(fold(full_name), Name(full_name, "name", (), 0.0))
        spellings = [_spelling(one, text) for one in (name, *item.spellings[:MAX_SURFACES])]
        surfaces = tuple(dict.fromkeys([*before.surfaces, *filter(None, spellings)]))[:MAX_SURFACES]
        kind = item.kind if before.kind == "name" and item.kind in KINDS else before.kind
        weight = 1.0 if fold(full_name) == fold(title) else _weight(surfaces, text, kind)
        names[fold(full_name)] = Name(before.name, kind, surfaces, weight)
        forms |= dict.fromkeys(map(fold, (item.name, name, full_name, *surfaces)), full_name)
    return Extraction(tuple(names.values()), tuple(best_relations(_relations(reply, text, forms))))


def _relations(reply: Reply, text: str, forms: Mapping[str, str]) -> Iterator[Relation]:
    statements = [(types_named_in(one), folded_text(one)) for one in _statements(text)]

    def is_named(name: str, statement: str) -> bool:
        return any(full_name == name and found_in(form, statement) for form, full_name in forms.items())

    for item in reply.relations[:MAX_RELATIONS]:
        subject, other = forms.get(fold(item.subject)), forms.get(fold(item.object))
        if (
            subject
            and other
            and any(
                item.type in types and is_named(subject, statement) and is_named(other, statement)
                for types, statement in statements
            )
        ):
            yield Relation(subject, item.type, other, SENTENCE)


def _statements(text: str) -> Iterator[str]:
    """The sentences that no word makes doubtful, and adjacent cells of rows with the header above them."""
    header: list[str] = []
    for sentence in sentences(text):
        line = text[sentence.start : sentence.end]
        if not line.startswith("|"):
            header = []
            if not (line.endswith("?") or is_negated_or_hedged(line)):
                yield line
            continue
        cells = line.strip("|").split("|")
        header = header or cells
        yield from (" | ".join((*header[at : at + 2], *cells[at : at + 2])) for at in range(len(cells) - 1))


def _supported_name(name: str, *sources: tuple[str, str]) -> str | None:
    """The name as the chunk or else the title spells it; None where neither contains it."""
    plain = " ".join(without_parenthesis(name).split())
    if not is_name(plain):
        return None
    for text, folded in sources:
        if spelling := _spelling(name, text) or _spelling(plain, text):
            return spelling
        # The chunk may write the name with other accents or punctuation.
        if found_in(plain, folded) and not has_invisible(plain) and plain.isprintable():
            return plain
    return None


def _spelling(name: str, text: str) -> str | None:
    """The name as the text spells it, in whole words of any case; None where the text lacks it."""
    match = _pattern(name).search(text) if is_name(name) else None
    return " ".join(match[0].split()) if match else None


def _pattern(name: str) -> re.Pattern[str]:
    words = r"\s+".join(map(re.escape, name.split())) or r"(?!)"
    pattern = words if is_unspaced(name) else rf"(?<![^\W_]){words}(?![^\W_])"
    return re.compile(pattern, re.IGNORECASE)


def _weight(surfaces: tuple[str, ...], text: str, kind: str) -> float:
    starts = [match.start() for one in surfaces for match in _pattern(one).finditer(text)]
    return prominence(min(starts), len(starts)) * (0.4 if kind == "date" else 1.0) if starts else 0.3
