"""Who and what a phrase of a clause is about: the names on its two sides; and whether it is denied."""

from dataclasses import dataclass

from shared.graph.clauses import Clause
from shared.graph.function_words import (
    ARTICLES,
    AUXILIARIES,
    BLOCKS,
    COPULAS,
    DENIALS,
    ENDINGS,
    GAP,
    GOING_ON,
    HEDGES,
    JOINTS,
    LEADING,
    LISTING,
    PRONOUNS,
)


@dataclass(frozen=True, slots=True)
class End:
    """One end of a relation, and how surely it is that."""

    letters: tuple[str, ...]
    sure: float


class Ends:
    """Of one clause."""

    def __init__(self, clause: Clause) -> None:
        self._clause = clause
        self._tokens = clause.tokens
        self._head = clause.head()

    def possessor(self, place: int) -> int | None:
        """Whose: of Lambert's elder brother, the place of Lambert."""
        for back in range(place - 1, max(-1, place - 5), -1):
            if self._tokens[back] == "'s":
                return back - 1 if self._clause.named(back - 1) else None
            if self._tokens[back] in BLOCKS or self._clause.named(back) or not self._tokens[back].isalpha():
                return None
        return None

    def held(self, place: int, *, copula: bool = False) -> End | None:
        """The name behind a noun: brother Boso; brother, Guy,; owner is Rosa Keane; owner: Rosa Keane."""
        token = self._clause.token(place)
        if token in COPULAS or token == ":":  # noqa: S105
            others = self.objects(place + 1)
            return End(others, 1.0) if others else None
        if copula:
            return None
        if token == ",":  # noqa: S105
            place += 1
        return End((self._tokens[place],), 0.9) if self._clause.named(place) else None

    def begins(self, place: int) -> bool:
        return all(token in ARTICLES or not token.isalpha() for token in self._tokens[:place])

    def subject(self, place: int, *, passive: bool = False, nominal: bool = False) -> End | None:
        """Who does it: the name before, with helping words between; or what the clause begins with."""
        back, copula = place - 1, False
        words = 0
        while back >= 0 and not self._clause.named(back):
            token = self._tokens[back]
            if token in AUXILIARIES or token.endswith("ly"):
                copula = copula or token in COPULAS
            elif nominal and not copula and words < 6 and token not in BLOCKS and token.isalpha():
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
        if token in PRONOUNS or token == ",":  # noqa: S105
            before = back - 1
            if token in PRONOUNS and self._clause.token(before) == ",":
                before -= 1
            # X, once called Y, bought Z: it is X that did.
            closes = token == "," and not passive and not nominal and self._head not in {None, before}  # noqa: S105
            # Prepared by X, approved by Y: X is not what Y approved.
            closes = closes or (token == "," and self._clause.token(before - 1) in {"by", "with"})  # noqa: S105
            if self._clause.named(before) and not closes:
                return End((self._tokens[before],), 0.95)
        return self._from_head(back, passive=passive or nominal, copula=copula)

    def _from_head(self, back: int, *, passive: bool, copula: bool) -> End | None:
        """What the clause begins with, if it stays about that: X is a film by Y, and is owned by Z."""
        head = self._head
        if head is None or head >= back:
            return None
        has_joint = self._tokens[back] in GOING_ON
        between = self._tokens[head + 1 : back + 1]
        copular = not COPULAS.isdisjoint(between) and PRONOUNS.isdisjoint(between)
        if (passive and copular) or (has_joint and (copular or not copula)):
            return End((self._tokens[head],), 0.9 if passive and copular and head < 3 else 0.75)
        return None

    def _several(self, last: int) -> End:
        """A and B own C: both do, where the clause begins with them."""
        letters = [self._tokens[last]]
        place = last
        while True:
            before = place - 1
            while before > 0 and self._tokens[before] in ARTICLES:
                before -= 1
            if before < 1 or self._tokens[before] not in LISTING or not self._clause.named(before - 1):
                break
            place = before - 1
            letters.insert(0, self._tokens[place])
        return End(tuple(letters) if place == self._head else (self._tokens[last],), 1.0)

    def objects(self, place: int) -> tuple[str, ...] | None:
        """The names behind a phrase: one, or a list of them."""
        first = self._object(place)
        if first is None:
            return None
        letters = [self._tokens[first]]
        has_joint = False
        commas = 0
        place = first + 1
        while place < len(self._tokens):
            token = self._tokens[place]
            joint = token in JOINTS
            behind = place + 1
            if token == "," and self._clause.token(behind) in JOINTS:  # noqa: S105
                joint, behind = True, behind + 1
            if not joint and token != ",":  # noqa: S105
                break
            while self._clause.token(behind) in LEADING:
                behind += 1
            if not self._clause.named(behind) or self._clause.token(behind + 1) == "'s":
                break
            if joint and self._clause.token(behind + 1) not in ENDINGS:
                break
            letters.append(self._tokens[behind])
            has_joint, commas, place = has_joint or joint, commas + (not joint), behind + 1
            if joint:
                break
        # Without an "and", what follows a comma says who that is: directed by A, B's friend.
        return tuple(letters if has_joint or not commas else letters[:1])

    def _object(self, place: int) -> int | None:
        for where in range(place, min(place + GAP + 1, len(self._tokens))):
            if self._clause.named(where):
                return None if self._clause.token(where + 1) == "'s" else where
            token = self._tokens[where]
            if token in BLOCKS or token in ".,;()|":  # noqa: S105
                return None
        return None

    def denied(self, place: int) -> bool:
        return any(token in DENIALS for token in self._tokens[max(0, place - 5) : place])

    def hedged(self, place: int) -> float:
        return 0.6 if any(token in HEDGES for token in self._tokens[max(0, place - 12) : place]) else 1.0
