"""Sentences that documents hold, said differently, and sentences that they do not hold, made of those."""

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.sets import Item
from shared.text.sentences import sentences

# What must stay where a sentence is to say the same.
_DENIES = re.compile(r"\b(?:not|no|never|none|neither|nor|without|cannot|only|except)\b|n't\b", re.IGNORECASE)
_NUMBER = re.compile(r"(?<![\w.,-])\d+(?:[.,]\d+)*(?![\w-])")
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}(?: [A-Z][a-z]{2,})*")
_BE = re.compile(r"\b(?:is|are|was|were|has|have|had|can|could|will|would|should|must|may)\b")
_ASKS = re.compile(
    r"^(?:in |on |at |to |for |from |by |of )?(?:what|which|who|whom|whose|when|where|why|how)"
    r"(?: (?:many|much|long|old|far|often))?(?: (?:is|are|was|were|did|does|do))?\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Asked:
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
    context: Sequence[Item], unseen: Sequence[Item], far: Item, asked: Sequence[Asked], draw: random.Random
) -> list[Case]:
    """About the first document of the context; `unseen` resemble it, and are not in the context."""
    own = told(context[0])
    if not own:
        return []
    cases = [Case("as it is", draw.choice(own), True)]
    cases += [Case(kind, text, True) for kind, text in _reworded(draw.choice(own), draw)]
    if len(context) > 1 and (others := told(context[1])):
        one, other = draw.choice(own), draw.choice(others)
        cases.append(Case("two joined", f"{one.rstrip('.')}, while {_lower(other)}", True))
        one, other = (_bent(_thinned(text, draw), draw) for text in (one, other))
        cases.append(Case("two joined, words left out", f"{one.rstrip('.')}, while {_lower(other)}", True))
    cases += _asked(asked, draw)
    for item, kind in (
        (unseen[0] if unseen else None, "of a similar document"),
        (far, "of another document"),
    ):
        if item is not None and (foreign := told(item)):
            cases.append(Case(kind, draw.choice(foreign), False))
            text = f'It says: "{draw.choice(foreign).strip(chr(34))}"'
            cases.append(Case("quotation of another document", text, False))
    cases += [Case(kind, text, False) for kind, text in _changed(own, context[0], far, draw)]
    return cases


def told(item: Item) -> list[str]:
    """The sentences of a document that are long enough to say something."""
    found = [item.text[one.start : one.end] for one in sentences(item.text, "en")]
    return [text for text in found if 6 <= len(text.split()) <= 50]


def _lower(text: str) -> str:
    return text if _NAME.match(text) else text[0].lower() + text[1:]


def _reworded(text: str, draw: random.Random) -> Iterator[tuple[str, str]]:
    yield "words left out", _thinned(text, draw)
    words = text.rstrip(".").split()
    cut = draw.randrange(2, len(words) - 2)
    if not _DENIES.search(text):
        yield "parts exchanged", " ".join([*words[cut:], *words[:cut]]) + "."
    yield "inflected", _bent(text, draw)


def _thinned(text: str, draw: random.Random) -> str:
    """A fifth of the words gone, no number, no neighbour of one (its month, its unit) and no denial."""
    words = text.split()
    kept = [
        word
        for place, word in enumerate(words)
        if draw.random() > 0.2
        or _DENIES.search(word)
        or re.search(r"[\d\"]", " ".join(words[max(0, place - 1) : place + 2]))
    ]
    return " ".join(kept)


def _bent(text: str, draw: random.Random) -> str:
    return re.sub(r"\b[a-z]{5,}\b", lambda found: _inflected(found.group(), draw), text)


def _inflected(word: str, draw: random.Random) -> str:
    for ending, other in (("ing", "ed"), ("ed", "ing"), ("es", "e"), ("s", ""), ("y", "ies"), ("e", "es")):
        if word.endswith(ending):
            return word.removesuffix(ending) + other if draw.random() < 0.5 else word
    return f"{word}s" if draw.random() < 0.5 else word


def _asked(asked: Sequence[Asked], draw: random.Random) -> Iterator[Case]:
    answers = [item.answer for item in asked if item.answer]
    for item in asked[:4]:
        rest = _ASKS.sub("", item.question.strip().rstrip("?")).strip()
        others = [answer for answer in answers if item.answer and not _alike(answer, item.answer, rest)]
        if item.answer:
            yield Case("question with its answer", f"{rest[:1].upper()}{rest[1:]}: {item.answer}.", True)
            if others:
                wrong = draw.choice(others)
                yield Case("question with another's answer", f"{rest[:1].upper()}{rest[1:]}: {wrong}.", False)
        elif answers:
            wrong = draw.choice(answers)
            yield Case("unanswerable, with an answer", f"{rest[:1].upper()}{rest[1:]}: {wrong}.", False)


def _alike(one: str, other: str, question: str) -> bool:
    left, right = set(one.casefold().split()), set(other.casefold().split())
    return bool(left & right) or left <= set(question.casefold().split())


def _changed(own: Sequence[str], document: Item, far: Item, draw: random.Random) -> Iterator[tuple[str, str]]:
    numbers = sorted(set(_NUMBER.findall(document.text)))
    if numbered := [text for text in own if _NUMBER.search(text)]:
        text = draw.choice(numbered)
        found = draw.choice(list(_NUMBER.finditer(text)))
        yield "number changed", _put(text, found, _other_number(found.group(), numbers, draw))
        if elsewhere := [number for number in numbers if number not in text]:
            yield "number of elsewhere in it", _put(text, found, draw.choice(elsewhere))
    strange = [name for name in _NAME.findall(far.text) if name.split()[0] not in document.text]
    if strange and (named := [text for text in own if _NAME.search(text)]):
        text = draw.choice(named)
        found = draw.choice(list(_NAME.finditer(text)))
        yield "name changed", _put(text, found, draw.choice(strange))
    if plain := [text for text in own if _BE.search(text) and not _DENIES.search(text)]:
        text = draw.choice(plain)
        found = draw.choice(list(_BE.finditer(text)))
        yield "denied", _put(text, found, f"{found.group()} not")
    if denying := [
        text for text in own if re.search(r"\b(?:is|are|was|were|did|does|do|could) not \w", text)
    ]:
        yield (
            "denial left out",
            re.sub(r"\b(is|are|was|were|did|does|do|could) not ", r"\1 ", draw.choice(denying)),
        )
    text = draw.choice(own)
    words = list(re.finditer(r"\b[a-z]{6,}\b", text))
    if words:
        doctored = _put(text.replace('"', ""), words[0], "marvellous") if '"' not in text else ""
        if doctored:
            yield "quotation with a word changed", f'It says: "{doctored}"'
    yield from _exchanged(own, draw)


def _exchanged(own: Sequence[str], draw: random.Random) -> Iterator[tuple[str, str]]:
    """Two names of one sentence, each in the other's place."""
    pairs = [(text, list(_NAME.finditer(text))) for text in own]
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


def _put(text: str, found: re.Match[str], instead: str) -> str:
    return text[: found.start()] + instead + text[found.end() :]


def _other_number(number: str, known: Sequence[str], draw: random.Random) -> str:
    while True:
        other = re.sub(r"\d", lambda _: str(draw.randrange(1, 10)), number)
        if other not in known and other != number:
            return other
