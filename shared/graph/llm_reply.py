"""What a model says that a chunk names, held against the chunk. It is as little to be trusted as the text
that it was made of: names are kept that stand there, and relations between such.
"""

import re
from collections.abc import Mapping

from pydantic import BaseModel, Field, ValidationError

from shared.graph.name_folding import fold, folded_text, found_in
from shared.graph.types import (
    KINDS,
    MOST_LETTERS,
    MOST_NAMES,
    MOST_RELATIONS,
    Extraction,
    Name,
    Relation,
    is_name,
)
from shared.text.normalize import has_invisible
from shared.text.stemming import unspaced

# Longer ones are no reply to a chunk.
MOST_CHARACTERS = 200_000
MOST_SURFACES = 20
_TYPE = re.compile(r"[A-Z][A-Z_]{1,49}")
_PARENTHESIS = re.compile(r"(?<=\S)\s*[(（][^()（）]*[)）]\s*\Z")


class ReplyName(BaseModel):
    name: str
    kind: str = "name"
    said: list[str] = Field(default_factory=list)


class ReplyRelation(BaseModel):
    subject: str
    type: str
    object: str
    confidence: float


class Reply(BaseModel):
    """What the model was asked to write."""

    names: list[ReplyName]
    relations: list[ReplyRelation]


def parse_reply(text: str) -> Reply | None:
    """The reply, whatever prose stands around it; None where there is none."""
    if len(text) > MOST_CHARACTERS:
        return None
    for candidate in (text, text[text.find("{") : text.rfind("}") + 1]):
        try:
            return Reply.model_validate_json(candidate)
        except ValidationError:
            continue
    return None


def check_reply(reply: Reply, title: str, text: str, known: Mapping[str, str]) -> Extraction:
    """The names and relations of the reply that the chunk or the title has. `known`: whole names by what the
    document writes in their place, folded."""
    names: dict[str, Name] = {}
    # What relations may begin and end with, folded: the title, and the kept names as the model writes them.
    ends = {fold(title): title} if fold(title) else {}
    places = (text, folded_text(text)), (title, folded_text(title))
    for item in reply.names[:MOST_NAMES]:
        name = _supported_name(item.name, *places)
        if name is None:
            continue
        whole = known.get(fold(name), name)
        before = names.get(fold(whole), Name(whole, "name", (), 0.0))
        written = [_written(one, text) for one in (name, *item.said[:MOST_SURFACES])]
        surfaces = tuple(dict.fromkeys((*before.surfaces, *(one for one in written if one and is_name(one)))))
        kind = item.kind if before.kind == "name" and item.kind in KINDS else before.kind
        weight = _weight(surfaces, text, kind, titled=fold(whole) == fold(title))
        names[fold(whole)] = Name(before.name, kind, surfaces[:MOST_SURFACES], weight)
        ends |= {fold(one): whole for one in (item.name, name, whole, *surfaces)}
    return Extraction(tuple(names.values()), tuple(_relations(reply, ends)))


def _relations(reply: Reply, ends: Mapping[str, str]) -> list[Relation]:
    best: dict[tuple[str, str, str], Relation] = {}
    for item in reply.relations[:MOST_RELATIONS]:
        subject, other = ends.get(fold(item.subject)), ends.get(fold(item.object))
        if not subject or not other or fold(subject) == fold(other):
            continue
        # (No comparison holds of what is not a number.)
        if not _TYPE.fullmatch(item.type) or not 0 < item.confidence <= 1:
            continue
        key = (fold(subject), item.type, fold(other))
        if key not in best or best[key].confidence < item.confidence:
            best[key] = Relation(subject, item.type, other, item.confidence)
    return list(best.values())


def _supported_name(name: str, *places: tuple[str, str]) -> str | None:
    """The name as the text writes it, or as its title does; None where it stands in neither."""
    plain = " ".join(_PARENTHESIS.sub("", name).split())
    if not is_name(plain):
        return None
    for text, folded in places:
        if written := _written(name, text) or _written(plain, text):
            return written
        # With other accents or punctuation.
        if found_in(plain, folded) and not has_invisible(plain) and plain.isprintable():
            return plain
    return None


def _written(name: str, text: str) -> str | None:
    """Where it stands in the text by itself, but for case and line ends: as it stands there."""
    if not 0 < len(name) <= MOST_LETTERS:
        return None
    match = _pattern(name).search(text)
    return " ".join(match[0].split()) if match else None


def _pattern(name: str) -> re.Pattern[str]:
    words = r"\s+".join(map(re.escape, name.split())) or r"(?!)"
    apart = words if unspaced(name) else rf"(?<![^\W_]){words}(?![^\W_])"
    return re.compile(apart, re.IGNORECASE)


def _weight(surfaces: tuple[str, ...], text: str, kind: str, *, titled: bool) -> float:
    """As the rules weigh: the title most; then what is said early and often; dates little."""
    if titled:
        return 1.0
    places = [match.start() for one in surfaces for match in _pattern(one).finditer(text)]
    if not places:
        return 0.3
    early = 0.2 if min(places) < 200 else 0.1 * (min(places) < 600)
    return (0.3 + early + 0.1 * min(3, len(places) - 1)) * (0.4 if kind == "date" else 1.0)
