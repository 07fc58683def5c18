"""Clauses: sentences as lowercase tokens, with a placeholder for each mention.

He, she, it, his and "the film" refer to the subject of the sentence before, or else to the title.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from shared.graph.mentions import Mention
from shared.text.sentences import Sentence, sentences
from shared.text.word_lists import word_sets

FIRST_PLACEHOLDER = 0xE000
_MAX_MENTIONS = 200
_MAX_PIECE = 2000
_TOKEN = re.compile(r"[’']s\b|[^\W_]+(?:-[^\W_]+|[’']t\b)*|[^\w\s]")
_POSSESSIVES = frozenset({"his", "her", "its", "their"})
_SUBJECTS = frozenset({"he", "she", "it", "this", "they"})
# The kinds of name that nouns refer to: the film, this service.
_KINDS = {
    noun: kinds
    for nouns, kinds in (
        ("film movie song album book novel series show play opera game single episode documentary story poem",
         {"work", "name", "person", "place", "organization", "identifier"}),
        ("service system api database queue library package module repository",
         {"service", "identifier", "name"}),
        ("team squad group", {"team"}),
        ("company band organisation organization firm", {"organization", "name"}),
        ("village town city river island mountain district", {"place", "name"}),
        ("incident outage ticket bug issue", {"identifier"}),
    )
    for noun in nouns.split()
}  # fmt: skip
_REFERRING_WORDS = _SUBJECTS | _POSSESSIVES | _KINDS.keys()
_WORDS = word_sets(__file__)
_ARTICLES = _WORDS["articles"]
_PREPOSITIONS = _WORDS["prepositions"]
_LEADING_TOKENS = _ARTICLES | {'"', "*", "#", "-", "“", "_", ">", "`", "dr", "mr", "mrs", "ms"}

# The subject of the sentence before, and the entity of the title.
Referents = tuple[Mention | None, Mention | None]


@dataclass(slots=True)
class Clause:
    """Lowercase tokens, and the mention of each placeholder, a letter of Unicode's private use area.
    `pronouns`: the placeholders of pronouns."""

    tokens: list[str] = field(default_factory=list)
    names: dict[str, Mention] = field(default_factory=dict)
    pronouns: set[str] = field(default_factory=set)

    def add(self, mention: Mention, *, is_pronoun: bool = False) -> None:
        placeholder = chr(FIRST_PLACEHOLDER + len(self.names))
        self.names[placeholder] = mention
        self.tokens.append(placeholder)
        if is_pronoun:
            self.pronouns.add(placeholder)

    def is_name(self, index: int) -> bool:
        return 0 <= index < len(self.tokens) and self.tokens[index] in self.names

    def token_at(self, index: int) -> str:
        return self.tokens[index] if 0 <= index < len(self.tokens) else ""

    def leading_name(self) -> int | None:
        """The index of the name that the clause begins with, behind an article or a phrase with a comma."""
        index = 0
        if "," in self.tokens[:12]:
            comma = self.tokens.index(",")
            index = comma + 1 if not any(map(self.is_name, range(comma))) else 0
        while self.token_at(index) in _LEADING_TOKENS:
            index += 1
        # Up to two nouns between an article and the name: the service Frostline.
        for _ in range(2 if self.token_at(index - 1) in _ARTICLES else 0):
            if self.is_name(index) or not (word := self.token_at(index)).isalpha() or word in _PREPOSITIONS:
                break
            index += 1
        return index if self.is_name(index) else None

    def leading_mention(self) -> Mention | None:
        index = self.leading_name()
        return None if index is None else self.names[self.tokens[index]]


def clauses_in(text: str, mentions: Sequence[Mention], title: Mention | None) -> Iterator[Clause]:
    """A clause for each sentence with a name. Headings and questions have none."""
    pending = iter([mention for mention in mentions if not mention.is_nested])
    upcoming = next(pending, None)
    subject: Mention | None = None
    position = 0
    for sentence in _sentences(text):
        if "\n\n" in text[position : sentence.start]:
            subject = None
        inside: list[Mention] = []
        while upcoming is not None and upcoming.start < sentence.end:
            if upcoming.start >= sentence.start and upcoming.end <= sentence.end:
                inside.append(upcoming)
            upcoming = next(pending, None)
        position = sentence.end
        if sentence.heading or text[sentence.end - 1] == "?" or len(inside) > _MAX_MENTIONS:
            continue
        clause = _clause(text, sentence, inside, (subject, title))
        if clause.names:
            yield clause
        subject = clause.leading_mention()


def _sentences(text: str) -> Iterator[Sentence]:
    """Sentences of pieces of bounded length: a long sentence takes the segmenter long."""
    start = 0
    for line in text.splitlines(keepends=True):
        for begin in range(0, len(line), _MAX_PIECE):
            piece = line[begin : begin + _MAX_PIECE]
            for sentence in sentences(piece):
                yield Sentence(start + sentence.start, start + sentence.end, sentence.heading)
            start += len(piece)


def _clause(text: str, sentence: Sentence, mentions: list[Mention], referents: Referents) -> Clause:
    clause = Clause()
    start = sentence.start
    for mention in mentions:
        _add_words(clause, text[start : mention.start], referents)
        if mention.kind != "date":
            clause.add(mention)
        elif clause.tokens[-1:] == ["on"]:
            # "Born on the first of May in Limerick" reads as "born in Limerick".
            clause.tokens.pop()
        start = mention.end
    _add_words(clause, text[start : sentence.end], referents)
    return clause


def _add_words(clause: Clause, text: str, referents: Referents) -> None:
    """Add the words between two mentions. A pronoun with a referent becomes a mention."""
    for word in _TOKEN.findall(text.lower().replace("’", "'").replace("- ", "-")):
        if word not in _REFERRING_WORDS:
            if not (word.isdigit() and clause.tokens[-1:] in (["born"], ["died"])):
                clause.tokens.append(word)
            continue
        referent = _referent(clause, word, referents)
        if referent is None or len(clause.names) > _MAX_MENTIONS:
            clause.tokens.append(word)
            continue
        clause.add(referent, is_pronoun=True)
        if word in _POSSESSIVES:
            clause.tokens.append("'s")


def _referent(clause: Clause, word: str, referents: Referents) -> Mention | None:
    """The mention that a pronoun or a noun behind these tokens refers to."""
    title = referents[-1]
    if word in _KINDS:
        has_article = clause.token_at(len(clause.tokens) - 1) in {"the", "this"}
        return title if has_article and title is not None and title.kind in _KINDS[word] else None
    is_first = not clause.tokens or (len(clause.tokens) < 12 and clause.tokens[-1] == ",")
    if word in _SUBJECTS and not (is_first and not clause.names):
        return None
    if word in _POSSESSIVES and (leading := clause.leading_mention()) is not None:
        return leading
    return next((mention for mention in referents if mention is not None and _agrees(word, mention)), None)


def _agrees(pronoun: str, mention: Mention) -> bool:
    if pronoun in {"he", "she", "his", "her"}:
        return mention.kind in {"person", "name"}
    if pronoun in {"they", "their"}:
        return mention.kind in {"team", "organization"}
    return mention.kind != "person"
