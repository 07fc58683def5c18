"""Subjects and objects of a phrase in a clause, and its negation and hedges."""

from dataclasses import dataclass

from shared.graph.clauses import Clause
from shared.graph.function_words import (
    ARTICLES,
    AUXILIARIES,
    BREAKS,
    CONJUNCTIONS,
    CONTINUATIONS,
    COPULAS,
    HEDGES,
    LEADING_TOKENS,
    LIST_ENDS,
    MAX_GAP,
    NEGATIONS,
    PRONOUNS,
    SEPARATORS,
)


@dataclass(frozen=True, slots=True)
class Argument:
    """The names on one side of a relation, and the confidence in them."""

    placeholders: tuple[str, ...]
    confidence: float


class Arguments:
    """The possible arguments of phrases in one clause."""

    def __init__(self, clause: Clause) -> None:
        self._tokens = clause.tokens
        self._is_name, self._token_at = clause.is_name, clause.token_at
        self._start = clause.leading_name()

    def possessor(self, index: int) -> int | None:
        """The index of Lambert in Lambert's elder brother."""
        for back in range(index - 1, max(-1, index - 5), -1):
            if self._tokens[back] == "'s":
                return back - 1 if self._is_name(back - 1) else None
            if self._tokens[back] in BREAKS or self._is_name(back) or not self._tokens[back].isalpha():
                return None
        return None

    def holder_at(self, index: int, *, copula: bool = False) -> Argument | None:
        """The holder of a role, behind its noun: brother Boso; brother, Guy,; owner is Rosa; owner: Rosa."""
        token = self._token_at(index)
        if token in COPULAS or token == ":":  # noqa: S105
            others = self.objects(index + 1)
            return Argument(others, 1.0) if others else None
        if copula:
            return None
        if token == ",":  # noqa: S105
            index += 1
        return Argument((self._tokens[index],), 0.9) if self._is_name(index) else None

    def is_start(self, index: int) -> bool:
        return all(token in ARTICLES or not token.isalpha() for token in self._tokens[:index])

    def subject(self, index: int, *, passive: bool = False, nominal: bool = False) -> Argument | None:
        """The name before a phrase and its auxiliaries, or the name that the clause begins with."""
        back, copula = index - 1, False
        words = 0
        while back >= 0 and not self._is_name(back):
            token = self._tokens[back]
            if token in AUXILIARIES or token.endswith("ly"):
                copula = copula or token in COPULAS
            elif nominal and not copula and words < 6 and token not in BREAKS and token.isalpha():
                words += 1
            elif token not in {"'", '"', "*", "_", "`"} or words:
                break
            back -= 1
        if back < 0:
            return None
        token = self._tokens[back]
        if self._is_name(back):
            if nominal and not copula:
                return None
            return self._coordinated_subjects(back)
        if token in PRONOUNS or token == ",":  # noqa: S105
            before = back - 1
            if token in PRONOUNS and self._token_at(before) == ",":
                before -= 1
            # In "X, once called Y, bought Z" the subject is X.
            closes = token == "," and not passive and not nominal and self._start not in {None, before}  # noqa: S105
            # In "prepared by X, approved by Y" X is not the subject of approved.
            closes = closes or (token == "," and self._token_at(before - 1) in {"by", "with"})  # noqa: S105
            if self._is_name(before) and not closes:
                return Argument((self._tokens[before],), 0.95)
        return self._leading_subject(back, passive=passive or nominal, copula=copula)

    def _leading_subject(self, back: int, *, passive: bool, copula: bool) -> Argument | None:
        """The first name, where it is still the subject: X is a film by Y, and is owned by Z."""
        start = self._start
        if start is None or start >= back:
            return None
        has_conjunction = self._tokens[back] in CONTINUATIONS
        between = self._tokens[start + 1 : back + 1]
        copular = not COPULAS.isdisjoint(between) and PRONOUNS.isdisjoint(between)
        if (passive and copular) or (has_conjunction and (copular or not copula)):
            return Argument((self._tokens[start],), 0.9 if passive and copular and start < 3 else 0.75)
        return None

    def _coordinated_subjects(self, last: int) -> Argument:
        """Both names in "A and B own C", where the clause begins with them."""
        placeholders = [self._tokens[last]]
        index = last
        while True:
            before = index - 1
            while before > 0 and self._tokens[before] in ARTICLES:
                before -= 1
            if before < 1 or self._tokens[before] not in SEPARATORS or not self._is_name(before - 1):
                break
            index = before - 1
            placeholders.insert(0, self._tokens[index])
        return Argument(tuple(placeholders) if index == self._start else (self._tokens[last],), 1.0)

    def objects(self, index: int) -> tuple[str, ...] | None:
        """The name or the list of names behind a phrase."""
        first = self._object(index)
        if first is None:
            return None
        placeholders, has_conjunction = [self._tokens[first]], False
        index = first + 1
        while not has_conjunction and index < len(self._tokens):
            token, behind = self._tokens[index], index + 1
            has_conjunction = token in CONJUNCTIONS
            if token == "," and self._token_at(behind) in CONJUNCTIONS:  # noqa: S105
                has_conjunction, behind = True, behind + 1
            while self._token_at(behind) in LEADING_TOKENS:
                behind += 1
            is_last = has_conjunction and self._token_at(behind + 1) in LIST_ENDS
            is_listed = is_last or (token == "," and not has_conjunction)  # noqa: S105
            if not is_listed or not self._is_name(behind) or self._token_at(behind + 1) == "'s":
                has_conjunction = False
                break
            placeholders.append(self._tokens[behind])
            index = behind + 1
        # Without an "and" a comma begins an apposition: directed by A, B's friend.
        return tuple(placeholders if has_conjunction else placeholders[:1])

    def _object(self, index: int) -> int | None:
        for where in range(index, min(index + MAX_GAP + 1, len(self._tokens))):
            if self._is_name(where):
                return None if self._token_at(where + 1) == "'s" else where
            token = self._tokens[where]
            if token in BREAKS or token in ".,;()|":  # noqa: S105
                return None
        return None

    def is_negated(self, index: int) -> bool:
        return not NEGATIONS.isdisjoint(self._tokens[max(0, index - 5) : index])

    def hedge_factor(self, index: int) -> float:
        return 1.0 if HEDGES.isdisjoint(self._tokens[max(0, index - 12) : index]) else 0.6
