"""How sentences say that what they name is related: by phrases between names, and by nouns such as mother.

What is denied is not read; what is only supposed is less sure, as is what a pronoun or the beginning of the
sentence stands for.
"""

from collections.abc import Iterable, Iterator, Sequence

from shared.graph.alias_resolution import aliases_of
from shared.graph.clauses import Clause, clauses_of
from shared.graph.function_words import COPULAS, LAST, LISTING, OF
from shared.graph.mentions import Mention
from shared.graph.name_folding import fold
from shared.graph.relation_arguments import End, Ends
from shared.graph.relation_patterns import (
    PHRASES,
    RELATIONS,
    TRIGGERS,
    Phrase,
    Role,
    phrase_at,
    role_at,
)
from shared.graph.types import Relation


def relations_of(
    text: str, spots: Sequence[Mention], subject: Mention | None
) -> tuple[list[Relation], dict[str, str]]:
    """The relations in the order of the text, and of what kinds their ends are, by folded name."""
    relations: list[Relation] = []
    for clause in clauses_of(text, spots, subject):
        relations += aliases_of(" ".join(clause.tokens), clause.names)
        for part in _parts(clause):
            relations += _Reading(part).relations()
    kinds = {fold(spot.name): spot.kind for spot in spots}
    relations = [_refined(relation, kinds) for relation in relations]
    return relations, dict(_kinds(relations))


def _parts(clause: Clause) -> Iterator[Clause]:
    """The clause without its parentheses, and each parenthesis behind a name as one of that name's own."""
    yield Clause(_without(clause.tokens), clause.names, clause.implied)
    for place, token in enumerate(clause.tokens):
        if token == "(" and clause.named(place - 1):  # noqa: S105
            end = next((end for end in range(place, min(place + 40, len(clause.tokens)))
                        if clause.tokens[end] == ")"), place)  # fmt: skip
            if any(map(clause.named, range(place, end))):
                inner = [clause.tokens[place - 1], ",", *clause.tokens[place + 1 : end]]
                yield Clause(inner, clause.names, clause.implied)


def _without(tokens: list[str]) -> list[str]:
    if "(" not in tokens:
        return tokens
    outside: list[str] = []
    depth = 0
    for token in tokens:
        depth += token == "("  # noqa: S105
        if not depth:
            outside.append(token)
        depth -= token == ")" and depth > 0  # noqa: S105
    return outside


def _turned(tokens: list[str]) -> list[str]:
    """German puts the verb last: caused by X, where it says by X caused."""
    for place, token in enumerate(tokens[2:], 2):
        if token in LAST and tokens[place - 2] in {"durch", "von", "vom", "mit", "in"}:
            return _turned_at(tokens, place)
    return tokens


def _turned_at(tokens: list[str], place: int) -> list[str]:
    return [*tokens[: place - 2], tokens[place], *tokens[place - 2 : place], *tokens[place + 1 :]]


class _Reading:
    """The relations of one clause."""

    def __init__(self, clause: Clause) -> None:
        self._clause = clause
        self._tokens = clause.tokens = _turned(clause.tokens)
        self._ends = Ends(clause)

    def relations(self) -> Iterator[Relation]:
        place = 0
        if TRIGGERS.isdisjoint(self._tokens) or len(self._clause.names) < 2:
            return
        while place < len(self._tokens):
            if self._tokens[place] not in TRIGGERS:
                place += 1
                continue
            phrase = phrase_at(self._tokens, place) or self._shared(place)
            if phrase is not None:
                phrase_relations = [*self._of_phrase(place, *phrase)]
                if phrase_relations:
                    yield from phrase_relations
                    place = (
                        phrase[1]
                        if phrase[0].rest and phrase[1] == place + 1 + len(phrase[0].rest)
                        else place + 1
                    )
                    continue
            if (role := role_at(self._tokens, place)) is not None:
                yield from self._of_role(place, role)
            place += 1

    def _of_phrase(self, place: int, phrase: Phrase, end: int) -> Iterator[Relation]:
        others = self._ends.objects(end)
        if others is None:
            return
        if (
            not phrase.rest
            and self._tokens[place].endswith("ed")
            and self._clause.token(place - 1) in COPULAS
        ):
            # Was released during: released by whom, it does not say.
            return
        subject = self._ends.subject(place, passive=bool(phrase.rest) and phrase.forward)
        if subject is None or self._ends.denied(place):
            return
        sure = phrase.sure * subject.sure * self._ends.hedged(place)
        yield from self._between(phrase.type, subject.letters, others, sure, phrase.forward)

    def _shared(self, place: int) -> tuple[Phrase, int] | None:
        """Directed and produced by: both by the same."""
        first = next(
            (one for one in PHRASES.get(self._tokens[place], ()) if one.rest and "by" in one.rest[0]), None
        )
        if first is None:
            return None
        for end in range(place + 1, min(place + 8, len(self._tokens))):
            token = self._tokens[end]
            if token == "by":  # noqa: S105
                return first, end + 1
            if token not in LISTING and token not in PHRASES and not token.endswith("ly"):
                return None
        return None

    def _between(
        self, type_: str, left: Iterable[str], right: Iterable[str], sure: float, forward: bool
    ) -> Iterator[Relation]:
        for one in left:
            for other in right:
                first, second = (one, other) if forward else (other, one)
                weak = 0.85 if {one, other} & self._clause.implied else 1.0
                yield Relation(
                    self._clause.names[first].name, type_, self._clause.names[second].name, sure * weak
                )

    def _of_role(self, place: int, role: Role) -> Iterator[Relation]:
        tokens, clause = self._tokens, self._clause
        begin = place - (
            role_at(tokens, place) is not None and tokens[place - 1] in {"root", "line", "chief"}
        )
        if self._ends.denied(begin):
            return
        owner = self._ends.possessor(begin)
        holder: End | None = None
        if owner is not None:
            of: tuple[str, ...] | None = (tokens[owner],)
            holder = self._ends.held(place + 1) or self._ends.subject(owner, nominal=True)
        elif clause.token(place + 1) in OF:
            of = self._ends.objects(place + 2)
            if of is None:
                return
            end = max(where for where in range(len(tokens)) if tokens[where] == of[-1]) + 1
            holder = self._ends.subject(begin, nominal=True)
            if holder is None and self._ends.begins(begin):
                holder = self._ends.held(end, copula=True)
        else:
            return
        if holder is None or of is None:
            return
        sure = 0.9 * holder.sure * self._ends.hedged(place)
        yield from self._between(role.type, of, holder.letters, sure, role.is_object)


def _refined(relation: Relation, kinds: dict[str, str]) -> Relation:
    """By what its ends are: a service belongs to a team as what it owns, a person as a member."""
    subject, other = kinds.get(fold(relation.subject), "name"), kinds.get(fold(relation.object), "name")
    type_ = relation.type
    first, second = relation.subject, relation.object
    if type_ == "PART_OF" and other in {"team", "organization"} and subject in {"person", "email"}:
        type_ = "MEMBER_OF"
    elif type_ == "PART_OF" and other in {"team", "person"} and subject in {"service", "identifier"}:
        type_ = "OWNED_BY"
    elif type_ == "REPORTS_TO" and subject in {"team", "organization", "service"}:
        type_ = "LED_BY" if other == "person" else type_
    elif type_ == "LED_BY" and subject == other == "person":
        type_ = "REPORTS_TO"
    elif type_ == "CAUSED_BY" and other == "person":
        return Relation(first, type_, second, relation.confidence * 0.7)
    if RELATIONS[type_].get("symmetric") and fold(second) < fold(first):
        first, second = second, first
    return Relation(first, type_, second, relation.confidence)


def _kinds(relations: Iterable[Relation]) -> Iterator[tuple[str, str]]:
    for relation in relations:
        if relation.confidence < 0.5:
            continue
        subject, other = RELATIONS[relation.type].get("ends", ("", ""))
        if subject:
            yield fold(relation.subject), subject
        if other:
            yield fold(relation.object), other
