"""Relations in sentences: phrases between names, and nouns of roles such as mother.

Negated phrases state no relation. Hedges, pronouns and distant subjects lower the confidence.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from shared.graph.alias_resolution import aliases_in
from shared.graph.clauses import Clause, clauses_in
from shared.graph.function_words import COPULAS, FINAL_VERBS, GENITIVES, SEPARATORS
from shared.graph.mentions import Mention
from shared.graph.name_folding import fold
from shared.graph.relation_arguments import Arguments
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


def relations_in(
    text: str, mentions: Sequence[Mention], subject: Mention | None
) -> tuple[list[Relation], dict[str, str]]:
    """The relations in the order of the text, and the kinds of their arguments by folded name."""
    relations: list[Relation] = []
    for clause in clauses_in(text, mentions, subject):
        relations += aliases_in(" ".join(clause.tokens), clause.names)
        for part in _parts(clause):
            relations += _ClauseRelations(part).relations()
    kinds = {fold(mention.name): mention.kind for mention in mentions}
    relations = [_refined(relation, kinds) for relation in relations]
    return relations, dict(_argument_kinds(relations))


def _parts(clause: Clause) -> Iterator[Clause]:
    """The clause without its parentheses, and a clause for each parenthesis behind a name."""
    yield Clause(_without_parentheses(clause.tokens), clause.names, clause.pronouns)
    for index, token in enumerate(clause.tokens):
        if token == "(" and clause.is_name(index - 1):  # noqa: S105
            end = next((end for end in range(index, min(index + 40, len(clause.tokens)))
                        if clause.tokens[end] == ")"), index)  # fmt: skip
            if any(map(clause.is_name, range(index, end))):
                inner = [clause.tokens[index - 1], ",", *clause.tokens[index + 1 : end]]
                yield Clause(inner, clause.names, clause.pronouns)


def _without_parentheses(tokens: list[str]) -> list[str]:
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


def _verb_first(tokens: list[str]) -> list[str]:
    """German puts the verb last: caused by X, where it says by X caused."""
    for index, token in enumerate(tokens[2:], 2):
        if token in FINAL_VERBS and tokens[index - 2] in {"durch", "von", "vom", "mit", "in"}:
            return [*tokens[: index - 2], token, *tokens[index - 2 : index], *tokens[index + 1 :]]
    return tokens


class _ClauseRelations:
    """The relations of one clause."""

    def __init__(self, clause: Clause) -> None:
        self._clause = clause
        self._tokens = clause.tokens = _verb_first(clause.tokens)
        self._arguments = Arguments(clause)

    def relations(self) -> Iterator[Relation]:
        tokens, index = self._tokens, 0
        if TRIGGERS.isdisjoint(tokens) or len(self._clause.names) < 2:
            return
        while index < len(tokens):
            if tokens[index] in TRIGGERS:
                phrase, end = phrase_at(tokens, index) or self._coordinated_phrase(index) or (None, 0)
                stated = [*self._from_phrase(index, phrase, end)] if phrase else []
                yield from stated
                if stated and phrase and phrase.following and end == index + 1 + len(phrase.following):
                    index = end
                    continue
                if not stated and (role := role_at(tokens, index)) is not None:
                    yield from self._from_role(index, role)
            index += 1

    def _from_phrase(self, index: int, phrase: Phrase, end: int) -> Iterator[Relation]:
        others = self._arguments.objects(end)
        is_participle = not phrase.following and self._tokens[index].endswith("ed")
        # "Was released during" names no agent.
        if others is None or (is_participle and self._clause.token_at(index - 1) in COPULAS):
            return
        subject = self._arguments.subject(index, passive=bool(phrase.following) and phrase.is_forward)
        if subject is None or self._arguments.is_negated(index):
            return
        confidence = phrase.confidence * subject.confidence * self._arguments.hedge_factor(index)
        yield from self._pairs(phrase.type, subject.placeholders, others, confidence, phrase.is_forward)

    def _coordinated_phrase(self, index: int) -> tuple[Phrase, int] | None:
        """The phrase and its end for the first verb of "directed and produced by"."""
        phrases = PHRASES.get(self._tokens[index], ())
        phrase = next((one for one in phrases if one.following and "by" in one.following[0]), None)
        if phrase is None:
            return None
        for end, token in enumerate(self._tokens[index + 1 : index + 8], index + 1):
            if token == "by":  # noqa: S105
                return phrase, end + 1
            if token not in SEPARATORS and token not in PHRASES and not token.endswith("ly"):
                return None
        return None

    def _pairs(
        self, type_: str, left: Iterable[str], right: Iterable[str], confidence: float, is_forward: bool
    ) -> Iterator[Relation]:
        for pair in product(left, right):
            subject, other = (self._clause.names[one].name for one in (pair if is_forward else pair[::-1]))
            factor = 1.0 if self._clause.pronouns.isdisjoint(pair) else 0.85
            yield Relation(subject, type_, other, confidence * factor)

    def _from_role(self, index: int, role: Role) -> Iterator[Relation]:
        arguments, tokens = self._arguments, self._tokens
        begin = index - (tokens[index - 1] in {"root", "line", "chief"})
        if arguments.is_negated(begin):
            return
        owner = arguments.possessor(begin)
        if owner is not None:
            owners: tuple[str, ...] | None = (tokens[owner],)
            holder = arguments.holder_at(index + 1) or arguments.subject(owner, nominal=True)
        elif self._clause.token_at(index + 1) in GENITIVES and (owners := arguments.objects(index + 2)):
            holder = arguments.subject(begin, nominal=True)
            if holder is None and arguments.is_start(begin):
                end = len(tokens) - tokens[::-1].index(owners[-1])
                holder = arguments.holder_at(end, copula=True)
        else:
            return
        if holder is not None and owners is not None:
            confidence = 0.9 * holder.confidence * arguments.hedge_factor(index)
            yield from self._pairs(role.type, owners, holder.placeholders, confidence, role.is_object)


def _refined(relation: Relation, kinds: dict[str, str]) -> Relation:
    """The relation with a type by the kinds of its arguments: a team owns a service, and has members."""
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


def _argument_kinds(relations: Iterable[Relation]) -> Iterator[tuple[str, str]]:
    for relation in relations:
        if relation.confidence < 0.5:
            continue
        subject, other = RELATIONS[relation.type].get("ends", ("", ""))
        if subject:
            yield fold(relation.subject), subject
        if other:
            yield fold(relation.object), other
