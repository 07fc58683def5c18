"""Sentences whose names are placeholders: the text in which relations are sought."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shared.graph.mentions import Mention
from shared.graph.name_folding import fold
from shared.text.language_detection import MONTH_NAMES
from shared.text.line_breaks import unwrapped
from shared.text.sentences import sentences_of_lines
from shared.text.word_lists import word_sets

FIRST_PLACEHOLDER = 0xE000
NAME = "[\ue000-\uf8fe]"
_MAX_MENTIONS = 200
_MAX_SENTENCE = 1000
_LIST_MARK = re.compile(r"\A\s*(?:[-*+>•]\s+|\d{1,3}[.)]\s+)*")
_LINK = re.compile(r"\[([^\[\]]*)\]\([^()\s]*\)")
_MARKUP = re.compile(r"[*_\[\]\"“”„«»]|`(?=" + NAME + r"`)|(?<=" + NAME + r")`")
_SPACE = re.compile(r"\s+")
_OPENING_PARENTHESIS = re.compile(r" *\( *")
_DATE = re.compile(
    rf" (?:(?:on )?\d{{1,2}} (?:{MONTH_NAMES})|(?:on )?(?:{MONTH_NAMES}) \d{{1,2}},) \d{{4}}\b", re.IGNORECASE
)
_BEFORE_MARK = re.compile(r" +(?=[.,;:!?])")
# Nouns of things that a title names.
NOUNS = word_sets(__file__)["nouns"]
_THINGS = "|".join(sorted(NOUNS))
_IT, _PERSON = re.compile(rf"(?:It|(?:The|This) (?:{_THINGS}))(?= )"), re.compile(r"(?:He|She)(?= )")
_LIFE = re.compile(rf"{NAME}(?:.{{0,60}}\bborn\b| \([^()]*(?:[–-]|died))")


@dataclass(frozen=True, slots=True)
class NamedSentence:
    """A sentence, and the mention of each placeholder, a letter of Unicode's private use area."""

    text: str
    names: dict[str, Mention]


def named_sentences(text: str, mentions: Sequence[Mention], title: Mention | None) -> Iterator[NamedSentence]:
    """The sentences with names, without headings and rows. In the first paragraph "It", "He" and "The film"
    at the beginning stand for the title, as long as each sentence begins with one of these or the title."""
    text = unwrapped(text)
    pending = iter([mention for mention in mentions if not mention.is_nested])
    upcoming = next(pending, None)
    position = 0
    topic, pronoun = title, _IT
    for sentence in sentences_of_lines(text):
        inside: list[Mention] = []
        while upcoming is not None and upcoming.start < sentence.end:
            if upcoming.start >= sentence.start and upcoming.end <= sentence.end:
                inside.append(upcoming)
            upcoming = next(pending, None)
        if "\n\n" in text[position : sentence.start].replace(" ", ""):
            topic = None
        position = sentence.end
        too_long = sentence.end - sentence.start > _MAX_SENTENCE or len(inside) > _MAX_MENTIONS
        if sentence.heading or too_long or text[sentence.start] == "|" or not (inside or topic):
            continue
        named = _named_sentence(text[sentence.start : sentence.end], sentence.start, inside)
        if topic is not None:
            if topic.kind == "person" or _LIFE.match(named.text):
                pronoun = _PERSON
            named = _with_topic(named, topic, pronoun)
            topic = topic if _begins_with(named, topic) else None
        if named.names:
            yield named


def _named_sentence(text: str, offset: int, mentions: Sequence[Mention]) -> NamedSentence:
    names: dict[str, Mention] = {}
    pieces: list[str] = []
    position = 0
    for mention in mentions:
        placeholder = chr(FIRST_PLACEHOLDER + len(names))
        names[placeholder] = mention
        pieces += [text[position : mention.start - offset], placeholder]
        position = mention.end - offset
    plain = _MARKUP.sub("", _LINK.sub(r"\1", "".join([*pieces, text[position:]])))
    plain = _OPENING_PARENTHESIS.sub(" (", _LIST_MARK.sub("", plain, count=1))
    plain = _BEFORE_MARK.sub("", _DATE.sub("", _SPACE.sub(" ", plain))).strip()
    return NamedSentence(plain, names)


def _with_topic(sentence: NamedSentence, topic: Mention, pronoun: re.Pattern[str]) -> NamedSentence:
    """The sentence with the topic instead of a pronoun at its beginning."""
    if (match := pronoun.match(sentence.text)) is None:
        return sentence
    placeholder = chr(FIRST_PLACEHOLDER + len(sentence.names))
    return NamedSentence(placeholder + sentence.text[match.end() :], {**sentence.names, placeholder: topic})


def _begins_with(sentence: NamedSentence, topic: Mention) -> bool:
    start = re.sub(r"\A(?:The|A|An) ", "", sentence.text)[:1]
    return start in sentence.names and fold(sentence.names[start].name) == fold(topic.name)
