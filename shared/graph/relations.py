"""How sentences say that what they name is related: by phrases between two names, and by nouns such as mother.

What is denied is not read; what is only supposed is less sure, as is what a pronoun or the sentence's beginning
stands for.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from shared.graph.aliases import aliases_of
from shared.graph.clauses import Clause, clauses_of
from shared.graph.evidence import fold
from shared.graph.nouns import Relation
from shared.graph.phrases import Phrase, Role, phrase_at, role_at
from shared.graph.roles import ENDS, SYMMETRIC
from shared.graph.spots import Spot

COPULAS = frozenset(
    "is are was were be been being became becomes remains ist sind war est était es era fue".split()
)
_AUXILIARIES = COPULAS | frozenset(
    """
    has have had will would can could may might must shall should to also still now then later first again already
    currently jointly directly fully formerly both all 's been being wurde wurden wird werden hat a été ha sido
    was used probably possibly reportedly allegedly apparently perhaps likely partly mainly mostly largely itself
    subsequently previously initially originally eventually finally soon fait forma se
    """.split()  # noqa: SIM905
)
_DENIALS = frozenset(
    """
    not never no neither nor without cannot n't don't doesn't didn't isn't aren't wasn't weren't won't can't
    nicht kein keine nie ne pas jamais nunca jamás hardly instead longer
    """.split()  # noqa: SIM905
)
_HEDGES = frozenset(
    """
    may might could possibly probably perhaps maybe reportedly allegedly apparently likely suspected suspects suspect
    believed believe believes seems seem appears appear rumoured rumored claimed claims if whether should would
    vielleicht wahrscheinlich vermutlich könnte peut-être probablement quizás probablemente podría planned proposed
    """.split()  # noqa: SIM905
)
# Behind a phrase, up to its object: what may not stand between.
_BLOCKS = frozenset(
    """
    and or but of by for in to with that who which whose from on at not no as when while because if is was are were
    be has had have it he she they we you i this these those after before since until than so und oder von et ou y o
    """.split()  # noqa: SIM905
)
_JOINTS = frozenset({"and", "&", "und", "et", "y", "or", "oder", "ou", "e"})
_ENDINGS = frozenset(". , ; : ) ( | / ! - – — \" ” ' * in on at for with by from of to as who which that until since when while"
                     " but so and or during after before via under ab gehört because if though where".split())  # fmt: skip
_ARTICLES = frozenset(
    "the a an our their its his her both dr mr mrs ms sir emperor king der die das dem den le la les el".split()
)
_PRONOUNS = frozenset({"who", "which", "that", "qui", "que", "der", "die", "das"})
_OF = frozenset({"of", "for", "to", "von", "de", "du", "des", "del", "der", "in"})
_GAP = 4


@dataclass(frozen=True, slots=True)
class _End:
    """One end of a relation, and how surely it is that."""

    letters: tuple[str, ...]
    sure: float


def relations_of(
    text: str, spots: Sequence[Spot], subject: Spot | None
) -> tuple[list[Relation], dict[str, str]]:
    """The relations in the order of the text, and of what kinds their ends are, by folded name."""
    found = [
        relation
        for clause in clauses_of(text, spots, subject)
        for part in _parts(clause)
        for relation in [*_Reading(part).relations()]
    ]
    kinds = {fold(spot.name): spot.kind for spot in spots}
    found = [_refined(relation, kinds) for relation in found]
    return found, dict(_kinds(found))


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
    kept: list[str] = []
    depth = 0
    for token in tokens:
        depth += token == "("  # noqa: S105
        if not depth:
            kept.append(token)
        depth -= token == ")" and depth > 0  # noqa: S105
    return kept


class _Reading:
    """The relations of one clause."""

    def __init__(self, clause: Clause) -> None:
        self._clause = clause
        self._tokens = clause.tokens
        self._head = clause.head()

    def relations(self) -> Iterator[Relation]:
        yield from aliases_of(" ".join(self._tokens), self._clause.names)
        place = 0
        while place < len(self._tokens):
            phrase = phrase_at(self._tokens, place)
            if phrase is not None:
                found = [*self._of_phrase(place, *phrase)]
                if found:
                    yield from found
                    place = phrase[1]
                    continue
            if (role := role_at(self._tokens, place)) is not None:
                yield from self._of_role(place, role)
            place += 1

    def _of_phrase(self, place: int, phrase: Phrase, end: int) -> Iterator[Relation]:
        others = self._objects(end)
        if others is None:
            return
        passive = bool(phrase.rest) or not phrase.forward
        subject = self._subject(place, passive=bool(phrase.rest) and phrase.forward)
        if subject is None or self._denied(place):
            return
        del passive
        sure = phrase.sure * subject.sure * self._hedged(place)
        yield from self._between(phrase.type, subject.letters, others, sure, phrase.forward)

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
        if self._denied(begin):
            return
        owner = self._possessor(begin)
        holder: _End | None = None
        if owner is not None:
            of: tuple[str, ...] | None = (tokens[owner],)
            holder = self._held(place + 1) or self._subject(owner, nominal=True)
        elif clause.token(place + 1) in _OF:
            of = self._objects(place + 2)
            if of is None:
                return
            end = max(where for where in range(len(tokens)) if tokens[where] == of[-1]) + 1
            holder = self._subject(begin, nominal=True)
            if holder is None and self._begins(begin):
                holder = self._held(end, copula=True)
        else:
            return
        if holder is None or of is None:
            return
        sure = 0.9 * holder.sure * self._hedged(place)
        yield from self._between(role.type, of, holder.letters, sure, role.is_object)

    def _possessor(self, place: int) -> int | None:
        """Whose: of Lambert's elder brother, the place of Lambert."""
        for back in range(place - 1, max(-1, place - 5), -1):
            if self._tokens[back] == "'s":
                return back - 1 if self._clause.named(back - 1) else None
            if self._tokens[back] in _BLOCKS or self._clause.named(back) or not self._tokens[back].isalpha():
                return None
        return None

    def _held(self, place: int, *, copula: bool = False) -> _End | None:
        """The name behind a noun: brother Boso; brother, Guy,; owner is Rosa Keane; owner: Rosa Keane."""
        token = self._clause.token(place)
        if token in COPULAS or token == ":":  # noqa: S105
            others = self._objects(place + 1)
            return _End(others, 1.0) if others else None
        if copula:
            return None
        if token == ",":  # noqa: S105
            place += 1
        return _End((self._tokens[place],), 0.9) if self._clause.named(place) else None

    def _begins(self, place: int) -> bool:
        return all(token in _ARTICLES or not token.isalpha() for token in self._tokens[:place])

    def _subject(self, place: int, *, passive: bool = False, nominal: bool = False) -> _End | None:
        """Who does it: the name before, with helping words between; or what the clause begins with."""
        back, copula = place - 1, False
        words = 0
        while back >= 0 and not self._clause.named(back):
            token = self._tokens[back]
            if token in _AUXILIARIES or token.endswith("ly"):
                copula = copula or token in COPULAS
            elif nominal and not copula and words < 6 and token not in _BLOCKS and token.isalpha():
                words += 1
            elif token not in {"'", '"', "*", "_", "`"} or words:
                break
            back -= 1
        if back < 0:
            return None
        token = self._tokens[back]
        if self._clause.named(back):
            if nominal and not copula:
                return None
            return self._several(back)
        if token in _PRONOUNS or token == ",":  # noqa: S105
            before = back - 1
            if token in _PRONOUNS and self._clause.token(before) == ",":
                before -= 1
            if self._clause.named(before):
                return _End((self._tokens[before],), 0.95)
        return self._from_head(back, passive=passive or nominal, copula=copula)

    def _from_head(self, back: int, *, passive: bool, copula: bool) -> _End | None:
        """What the clause begins with, if it goes on being about that: X is a film by Y, and is owned by Z."""
        head = self._head
        if head is None or head >= back:
            return None
        joined = self._tokens[back] in _JOINTS | {"then", "but", ","}
        between = self._tokens[head + 1 : back + 1]
        told = any(token in COPULAS for token in between) and not any(token in _PRONOUNS for token in between)
        if (passive and told) or (joined and (told or not copula)):
            return _End((self._tokens[head],), 0.75)
        return None

    def _several(self, last: int) -> _End:
        """A and B own C: both do, where the clause begins with them."""
        letters = [self._tokens[last]]
        place = last
        while place >= 2 and self._tokens[place - 1] in _JOINTS | {","} and self._clause.named(place - 2):
            place -= 2
            letters.append(self._tokens[place])
        return _End(tuple(letters) if place == self._head else (self._tokens[last],), 1.0)

    def _objects(self, place: int) -> tuple[str, ...] | None:
        """The names behind a phrase: one, or a list of them."""
        first = self._object(place)
        if first is None:
            return None
        letters = [self._tokens[first]]
        joined = False
        commas = 0
        place = first + 1
        while place < len(self._tokens):
            token = self._tokens[place]
            joint = token in _JOINTS
            behind = place + 1
            if token == "," and self._clause.token(behind) in _JOINTS:  # noqa: S105
                joint, behind = True, behind + 1
            if not joint and token != ",":  # noqa: S105
                break
            while self._clause.token(behind) in _ARTICLES | {'"', "`", "“"}:
                behind += 1
            if not self._clause.named(behind) or self._clause.token(behind + 1) == "'s":
                break
            if joint and self._clause.token(behind + 1) not in _ENDINGS | {""}:
                break
            letters.append(self._tokens[behind])
            joined, commas, place = joined or joint, commas + (not joint), behind + 1
            if joint:
                break
        # Without an "and", what follows a comma says who that is: directed by A, B's friend.
        return tuple(letters if joined or not commas else letters[:1])

    def _object(self, place: int) -> int | None:
        for where in range(place, min(place + _GAP + 1, len(self._tokens))):
            if self._clause.named(where):
                return None if self._clause.token(where + 1) == "'s" else where
            token = self._tokens[where]
            if token in _BLOCKS or token in ".,;()|":
                return None
        return None

    def _denied(self, place: int) -> bool:
        return any(token in _DENIALS for token in self._tokens[max(0, place - 5) : place])

    def _hedged(self, place: int) -> float:
        return 0.6 if any(token in _HEDGES for token in self._tokens[max(0, place - 12) : place]) else 1.0


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
    if type_ in SYMMETRIC and fold(second) < fold(first):
        first, second = second, first
    return Relation(first, type_, second, relation.confidence)


def _kinds(relations: Iterable[Relation]) -> Iterator[tuple[str, str]]:
    for relation in relations:
        if relation.confidence < 0.5:
            continue
        subject, other = ENDS.get(relation.type, (None, None))
        if subject:
            yield fold(relation.subject), subject
        if other:
            yield fold(relation.object), other
