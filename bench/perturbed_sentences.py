"""Test sentences for the grounding check: variants of documents' sentences that are true, and that are
false."""

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shared.calibration.labelled_sets import Item
from shared.text.language_detection import MONTHS
from shared.text.sentences import sentences

# The kind of the sentences that are not changed.
VERBATIM = "as it is"
# What must stay where a sentence is to say the same.
_NEGATION = re.compile(
    r"\b(?:not|no|never|none|neither|nor|without|cannot|only|except)\b|n't\b", re.IGNORECASE
)
_NUMBER = re.compile(r"(?<![\w.,-])\d+(?:[.,]\d+)*(?![\w-])")
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}(?: [A-Z][a-z]{2,})*")
_AUXILIARY = re.compile(r"\b(?:is|are|was|were|has|have|had|can|could|will|would|should|must|may)\b")
_QUESTION_WORDS = re.compile(
    r"^(?:in |on |at |to |for |from |by |of )?(?:what|which|who|whom|whose|when|where|why|how)"
    r"(?: (?:many|much|long|old|far|often))?(?: (?:is|are|was|were|did|does|do))?\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class QuestionAnswer:
    """A question about a document, and its answer, or None where the document has none."""

    question: str
    answer: str | None


@dataclass(frozen=True)
class Case:
    kind: str
    text: str
    holds: bool

    @property
    def quotes(self) -> bool:
        return self.kind.startswith("quotation")


def claims_about(
    context: Sequence[Item],
    unseen: Sequence[Item],
    far: Item,
    questions: Sequence[QuestionAnswer],
    draw: random.Random,
) -> list[Case]:
    """About the first document of the context; `unseen` resemble it, and are not in the context."""
    sentences_of_document = long_sentences(context[0])
    if not sentences_of_document:
        return []
    cases = [Case(VERBATIM, draw.choice(sentences_of_document), True)]
    cases += [
        Case(kind, text, True) for kind, text in _true_variants(draw.choice(sentences_of_document), draw)
    ]
    if len(context) > 1 and (others := long_sentences(context[1])):
        one, other = draw.choice(sentences_of_document), draw.choice(others)
        cases.append(Case("two joined", f"{one.rstrip('.')}, while {_lower(other)}", True))
        one, other = (_inflect_words(_drop_words(text, draw), draw) for text in (one, other))
        cases.append(Case("two joined, words left out", f"{one.rstrip('.')}, while {_lower(other)}", True))
    names = _names_of(context[0].text)
    cases += _question_cases(questions, names, draw)
    for item, kind in (
        (unseen[0] if unseen else None, "of a similar document"),
        (far, "of another document"),
    ):
        if item is not None and (foreign := long_sentences(item)):
            cases.append(Case(kind, draw.choice(foreign), False))
            text = f'It says: "{draw.choice(foreign).strip(chr(34))}"'
            cases.append(Case("quotation of another document", text, False))
    cases += [
        Case(kind, text, False)
        for kind, text in _false_variants(sentences_of_document, context[0], far, draw)
    ]
    for text in draw.sample(sentences_of_document, len(sentences_of_document)):
        if exchanged := _exchange_name(text, names, draw):
            cases.append(Case("name of elsewhere in it", exchanged, False))
            fewer_words = _inflect_words(_drop_words(exchanged, draw), draw)
            cases.append(Case("name of elsewhere in it, words left out", fewer_words, False))
            break
    return cases


def long_sentences(item: Item) -> list[str]:
    """The sentences of a document that are long enough to say something."""
    match = [item.text[one.start : one.end] for one in sentences(item.text, "en")]
    return [text for text in match if 6 <= len(text.split()) <= 50]


def _lower(text: str) -> str:
    return text if _NAME.match(text) else text[0].lower() + text[1:]


def _true_variants(text: str, draw: random.Random) -> Iterator[tuple[str, str]]:
    yield "words left out", _drop_words(text, draw)
    words = text.rstrip(".").split()
    cut = draw.randrange(2, len(words) - 2)
    if not _NEGATION.search(text):
        yield "parts exchanged", " ".join([*words[cut:], *words[:cut]]) + "."
    yield "inflected", _inflect_words(text, draw)


def _drop_words(text: str, draw: random.Random) -> str:
    """A fifth of the words gone, no number, no neighbour of one (its month, its unit) and no denial."""
    words = text.split()
    remaining = [
        word
        for place, word in enumerate(words)
        if draw.random() > 0.2
        or _NEGATION.search(word)
        or re.search(r"[\d\"]", " ".join(words[max(0, place - 1) : place + 2]))
    ]
    return " ".join(remaining)


def _inflect_words(text: str, draw: random.Random) -> str:
    return re.sub(r"\b[a-z]{5,}\b", lambda match: _inflect(match.group(), draw), text)


def _inflect(word: str, draw: random.Random) -> str:
    for ending, other in (("ing", "ed"), ("ed", "ing"), ("es", "e"), ("s", ""), ("y", "ies"), ("e", "es")):
        if word.endswith(ending):
            return word.removesuffix(ending) + other if draw.random() < 0.5 else word
    return f"{word}s" if draw.random() < 0.5 else word


def _question_cases(
    questions: Sequence[QuestionAnswer], names: Sequence[str], draw: random.Random
) -> Iterator[Case]:
    answers = [item.answer for item in questions if item.answer]
    for item in questions[:4]:
        rest = _QUESTION_WORDS.sub("", item.question.strip().rstrip("?")).strip()
        others = [answer for answer in answers if item.answer and not _overlaps(answer, item.answer, rest)]
        if item.answer:
            statement = f"{rest[:1].upper()}{rest[1:]}: {item.answer}."
            yield Case("question with its answer", statement, True)
            if exchanged := _exchange_name(statement, names, draw):
                yield Case("question with a name of elsewhere", exchanged, False)
            if others:
                wrong = draw.choice(others)
                yield Case("question with another's answer", f"{rest[:1].upper()}{rest[1:]}: {wrong}.", False)
        elif answers:
            wrong = draw.choice(answers)
            yield Case("unanswerable, with an answer", f"{rest[:1].upper()}{rest[1:]}: {wrong}.", False)


def _overlaps(one: str, other: str, question: str) -> bool:
    left, right = set(one.casefold().split()), set(other.casefold().split())
    return bool(left & right) or left <= set(question.casefold().split())


def _false_variants(
    sentences_of_document: Sequence[str], document: Item, far: Item, draw: random.Random
) -> Iterator[tuple[str, str]]:
    numbers = sorted(set(_NUMBER.findall(document.text)))
    if numbered := [text for text in sentences_of_document if _NUMBER.search(text)]:
        text = draw.choice(numbered)
        match = draw.choice(list(_NUMBER.finditer(text)))
        yield "number changed", _replace_match(text, match, _other_number(match.group(), numbers, draw))
        if elsewhere := [number for number in numbers if number not in text]:
            yield "number of elsewhere in it", _replace_match(text, match, draw.choice(elsewhere))
    strange = [name for name in _NAME.findall(far.text) if name.split()[0] not in document.text]
    if strange and (named := [text for text in sentences_of_document if _NAME.search(text)]):
        text = draw.choice(named)
        match = draw.choice(list(_NAME.finditer(text)))
        yield "name changed", _replace_match(text, match, draw.choice(strange))
    if plain := [
        text for text in sentences_of_document if _AUXILIARY.search(text) and not _NEGATION.search(text)
    ]:
        text = draw.choice(plain)
        match = draw.choice(list(_AUXILIARY.finditer(text)))
        yield "denied", _replace_match(text, match, f"{match.group()} not")
    if denying := [
        text
        for text in sentences_of_document
        if re.search(r"\b(?:is|are|was|were|did|does|do|could) not \w", text)
    ]:
        yield (
            "denial left out",
            re.sub(r"\b(is|are|was|were|did|does|do|could) not ", r"\1 ", draw.choice(denying)),
        )
    text = draw.choice(sentences_of_document)
    words = list(re.finditer(r"\b[a-z]{6,}\b", text))
    if words:
        doctored = _replace_match(text.replace('"', ""), words[0], "marvellous") if '"' not in text else ""
        if doctored:
            yield "quotation with a word changed", f'It says: "{doctored}"'
    yield from _swap_names(sentences_of_document, draw)


def _swap_names(sentences_of_document: Sequence[str], draw: random.Random) -> Iterator[tuple[str, str]]:
    """Two names of one sentence, each in the other's place."""
    pairs = [(text, list(_NAME.finditer(text))) for text in sentences_of_document]
    pairs = [
        (text, names) for text, names in pairs if len(names) == 2 and names[0].group() != names[1].group()
    ]
    # Watt and Newcomen are Newcomen and Watt.
    pairs = [
        (text, names)
        for text, names in pairs
        if re.search(r"[a-z]{4}", text[names[0].end() : names[1].start()].replace("then", ""))
    ]
    if pairs:
        text, (one, other) = draw.choice(pairs)
        parts = (text[: one.start()], other.group(), text[one.end() : other.start()], one.group())
        yield "two names exchanged", "".join(parts) + text[other.end() :]


def _names_of(text: str) -> list[str]:
    """The names of a text, without months, which are parts of dates."""
    return sorted({name for name in _NAME.findall(text) if not _words(name) & MONTHS.keys()})


def _exchange_name(text: str, names: Sequence[str], draw: random.Random) -> str | None:
    """The text with another name of its document instead of one of its names."""
    own = [match for match in _NAME.finditer(text) if match.group() in names]
    others = [name for name in names if not _words(name) & _words(text)]
    return _replace_match(text, draw.choice(own), draw.choice(others)) if own and others else None


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))


def _replace_match(text: str, match: re.Match[str], replacement: str) -> str:
    return text[: match.start()] + replacement + text[match.end() :]


def _other_number(number: str, known: Sequence[str], draw: random.Random) -> str:
    while True:
        other = re.sub(r"\d", lambda _: str(draw.randrange(1, 10)), number)
        if other not in known and other != number:
            return other
        # The text may have every number of so many digits.
        number += "0"
