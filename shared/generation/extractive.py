"""Extractive answers: the best statements of the matches, with citations.

The score of a statement is its similarity to the question (cosine of their embeddings) and its share of the
question's words, weighted by rarity, which finds identifiers and numbers. Words of the title and the section
count half.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from shared.generation.citations import SNIPPET_CHARACTERS, snippet
from shared.generation.conflicting_values import conflicting
from shared.generation.passage_statements import (
    QUESTION,
    Statement,
    StatementKind,
    begins_with_pronoun,
    statements,
)
from shared.text.citation_marks import contradiction, mark, paragraph
from shared.text.identifiers import names_one_thing
from shared.text.language_detection import Language, language_of
from shared.text.stemming import content_words
from shared.text.word_lists import word_sets
from shared.types import Citation, ExtractedSentence, GeneratedText, Match

MODEL = "extractive"
MAX_SENTENCES, MAX_INDIRECT_SENTENCES, MAX_ITEMS, MAX_NOTES = 5, 3, 10, 2
# The least share of the best score, and that of a sentence that directly follows a chosen one ("The reason
# was ...").
MIN_SHARE, MIN_SHARE_OF_FOLLOWER = 0.76, 0.4
# The least share of a sentence that decides between yes and no and therefore comes first.
MIN_SHARE_OF_DECIDER = 0.85
# An answer whose best score is lower begins with INDIRECT.
DIRECT_SCORE = 0.5
INDIRECT = "These passages come closest:"
SIMILARITY_WEIGHT, WORD_WEIGHT = 0.6, 0.4
# The share of a word of the question that only the title or the section's heading has, or an identifier that
# only the passage has.
SHARE_OF_CONTEXT = 0.5
# The weight of the question's words in a list against its best item.
LIST_WORD_WEIGHT = 0.2
# The least share of the question's words in the heading of a list and the document's title, if the question
# asks for the list without a plural ("What do I need for ...?").
MIN_SHARE_OF_HEADING = 0.6
# Between the statements of a paragraph or a list: a space, or the end of a line and a bullet.
MAX_GAP = 6
_OTHERWISE: dict[Language, str] = {
    "en": "says otherwise", "de": "sagt etwas anderes", "fr": "dit autre chose", "es": "dice otra cosa"
}  # fmt: skip
_WORD = re.compile(r"[\w-]+")
_WORDS = word_sets(__file__)

Embed = Callable[[Sequence[str]], list[list[float]]]
_Candidates = dict[ExtractedSentence, Statement]
_Scores = Mapping[ExtractedSentence, float]


def extract(
    question: str,
    matches: Sequence[Match],
    citations: Sequence[Citation],
    embed: Embed,
    vector: list[float] | None = None,
) -> GeneratedText:
    """An answer of one to five sentences, or of a list, from the matches of cited documents, with a paragraph
    and a mark [n] for each document. `vector`: the question's embedding, where there is one. Raises what
    `embed` raises."""
    candidates = candidates_of(question, matches, citations)
    if not candidates:
        best = citations[0].match
        return GeneratedText(f"{INDIRECT}\n\n{_paragraph(best, [best.text.strip()], 1)}", MODEL)
    scores = _scores(question, candidates, embed, vector)
    is_direct = max(scores.values()) >= DIRECT_SCORE
    best_ones = _choose(question, candidates, scores, MAX_SENTENCES if is_direct else MAX_INDIRECT_SENTENCES)
    newest, older = _newest(best_ones, list(candidates))
    chosen = _with_headings(_ordered(question, newest), candidates)
    notes = [contradicting_note(question, sentence) for sentence in older[:MAX_NOTES]]
    paragraphs = [] if is_direct else [INDIRECT]
    snippets = {sentence.number: _snippet(sentence) for sentence in reversed([*chosen, *notes])}
    for number in dict.fromkeys(sentence.number for sentence in chosen):
        texts = [sentence.text for sentence in chosen if sentence.number == number]
        paragraphs.append(_paragraph(citations[number - 1].match, texts, number))
    paragraphs += [f"{note.text} {mark(note.number)}" for note in notes]
    return GeneratedText(
        "\n\n".join(paragraphs),
        MODEL,
        snippets=snippets,
        sentences=(*chosen, *notes),
        has_conflict=bool(older),
    )


def _paragraph(match: Match, texts: Sequence[str], number: int) -> str:
    return paragraph(match.title, match.occurred_at, texts, number)


def contradicting_note(question: str, sentence: ExtractedSentence) -> ExtractedSentence:
    match, otherwise = sentence.match, _OTHERWISE[language_of(question)]
    return replace(sentence, text=contradiction(match.title, match.occurred_at, otherwise, sentence.text))


def _snippet(sentence: ExtractedSentence) -> str:
    """The beginning of the passage if it contains the sentence, else the text from the sentence on."""
    match = sentence.match
    start, end = sentence.start - match.span[0], sentence.end - match.span[0]
    return snippet(match.text if end <= SNIPPET_CHARACTERS else match.text[start:])


def candidates_of(question: str, matches: Sequence[Match], citations: Sequence[Citation]) -> _Candidates:
    """The distinct statements with words in the matches of cited documents, by document and position."""
    numbers = {citation.match.document_id: number for number, citation in enumerate(citations, start=1)}
    words = content_words(question)
    by_place: dict[tuple[int, int], tuple[ExtractedSentence, Statement]] = {}
    for match in matches:
        number = numbers.get(match.document_id)
        if number is None:
            continue
        for item in statements(match.text, match.lang, words, match.section_title, match.header):
            start, end = match.span[0] + item.start, match.span[0] + item.end
            sentence = ExtractedSentence(item.text, number, match, start, end, content_words(item.text))
            if sentence.words:
                # Chunks overlap: a sentence of a document counts once.
                by_place.setdefault((number, start), (sentence, item))
    return _matching_rows(words, dict(by_place[place] for place in sorted(by_place)))


def _matching_rows(words: frozenset[str], candidates: _Candidates) -> _Candidates:
    """The candidates without rows that have only some of the question's words that another row of the table
    has. The names of columns are in all rows."""
    cells: dict[tuple[int, str], dict[ExtractedSentence, frozenset[str]]] = defaultdict(dict)
    for sentence, item in candidates.items():
        if item.kind is StatementKind.ROW:
            first = sentence.match.span[0]
            row = sentence.match.text[sentence.start - first : sentence.end - first]
            cells[sentence.number, item.heading][sentence] = words & content_words(row)
    worse = {
        sentence
        for rows in cells.values()
        for sentence, own in rows.items()
        if any(own < other for other in rows.values())
    }
    return {sentence: item for sentence, item in candidates.items() if sentence not in worse}


def _scores(question: str, candidates: _Candidates, embed: Embed, vector: list[float] | None) -> _Scores:
    # Alone, an item or a row seldom names its subject.
    texts = [
        sentence.text if item.kind is StatementKind.SENTENCE else _under(item.heading, sentence.text)
        for sentence, item in candidates.items()
    ]
    if vector is None:
        vector, *vectors = embed([question, *texts])
    else:
        vectors = embed(texts)
    frequency = Counter(word for candidate in candidates for word in candidate.words)
    rarity = {word: math.log(1 + len(candidates) / (1 + frequency[word])) for word in content_words(question)}
    total = sum(rarity.values()) or 1.0
    identifiers = {word for word in rarity if names_one_thing(word)}

    def coverage(sentence: ExtractedSentence, item: Statement) -> float:
        passage = sentence.match.text.casefold()
        heading = content_words(item.heading)
        own = sentence.words if item.kind is StatementKind.SENTENCE else sentence.words | heading
        context = heading | content_words(sentence.match.title)
        context |= {word for word in identifiers if word in passage}
        shares = dict.fromkeys(context, SHARE_OF_CONTEXT) | dict.fromkeys(own, 1.0)
        return sum(weight * shares.get(word, 0.0) for word, weight in rarity.items()) / total

    return {
        sentence: SIMILARITY_WEIGHT * sum(a * b for a, b in zip(vector, other, strict=True))
        + WORD_WEIGHT * coverage(sentence, item)
        for (sentence, item), other in zip(candidates.items(), vectors, strict=True)
    }


def _choose(question: str, candidates: _Candidates, scores: _Scores, limit: int) -> list[ExtractedSentence]:
    """A list if the question asks for one, else the best statements, each with what follows from it, without
    repetitions. The best comes first."""
    best = max(scores.values())
    after = {
        one: other
        for one, other in pairwise(candidates)
        if one.number == other.number and 0 <= other.start - one.end <= MAX_GAP
    }
    lists = _lists(candidates, after)
    if items := _best_list(question, lists, candidates, scores):
        return items
    chosen: list[ExtractedSentence] = []
    ranked = sorted(candidates, key=lambda item: -scores[item])
    is_why = _has(question, "reasons")
    if is_why or _begins(question, "asks_yes_or_no"):
        least = MIN_SHARE_OF_FOLLOWER if is_why else MIN_SHARE_OF_DECIDER
        near = (item for item in ranked if scores[item] >= least * best)
        decides = "reasons" if is_why else "decides"
        ranked.insert(0, next((item for item in near if _has(item.text, decides)), ranked[0]))
    for candidate in ranked:
        if chosen and scores[candidate] < MIN_SHARE * best:
            break
        if candidate.text.endswith(":"):
            # Nothing without its list.
            if (items := next((items for items in lists if items[0] is candidate), [])) and not chosen:
                return items
            continue
        context, follower = [candidate], after.get(candidate)
        if follower and candidates[follower].kind is StatementKind.SENTENCE:
            is_limit = _has(follower.text, "limits")
            if is_limit or scores[follower] >= MIN_SHARE_OF_FOLLOWER * best:
                context.append(follower)
        for item in context:
            if len(chosen) < limit and not any(_repeats(item.words, other.words) for other in chosen):
                chosen.append(item)
    return chosen or ranked[:1]


def _lists(
    candidates: _Candidates, after: Mapping[ExtractedSentence, ExtractedSentence]
) -> list[list[ExtractedSentence]]:
    """The lists of two items or more, each behind the line that introduces it, if one does, and the tables of
    two rows or more."""
    before = {other: one for one, other in after.items()}
    lists: list[list[ExtractedSentence]] = []
    for sentence, item in candidates.items():
        previous = before.get(sentence)
        if item.kind not in (StatementKind.ITEM, StatementKind.ROW):
            continue
        if previous and candidates[previous].kind is item.kind:
            lists[-1].append(sentence)
        else:
            lists.append([previous, sentence] if previous and previous.text.endswith(":") else [sentence])
    return [items[: MAX_ITEMS + 1] for items in lists if len(items) > 1]


def _best_list(
    question: str, lists: Sequence[list[ExtractedSentence]], candidates: _Candidates, scores: _Scores
) -> list[ExtractedSentence]:
    """The best list, by its best item and the question's words in it. None if the question asks for one
    thing, or if a statement is better."""
    words = content_words(question)
    best_score = max(scores.values())

    def score(items: Sequence[ExtractedSentence]) -> float:
        context = content_words(f"{items[0].match.title} {candidates[items[0]].heading}")
        covered = words & context.union(*(item.words for item in items))
        return max(scores[item] for item in items) + LIST_WORD_WEIGHT * len(covered) / max(1, len(words))

    def is_under_its_heading(items: Sequence[ExtractedSentence]) -> bool:
        heading = words & content_words(candidates[items[-1]].heading)
        title = words & content_words(items[0].match.title)
        return (
            len(heading | title) >= MIN_SHARE_OF_HEADING * len(words)
            and not heading <= title
            and max(scores[item] for item in items) >= MIN_SHARE * best_score
        )

    if not _asks_for_several(question):
        lists = list(filter(is_under_its_heading, lists)) if _asks_for_something(question) else []
    best = max(lists, key=score, default=[])
    return best if best and score(best) >= best_score else []


def _newest(
    chosen: Sequence[ExtractedSentence], candidates: Sequence[ExtractedSentence]
) -> tuple[list[ExtractedSentence], list[ExtractedSentence]]:
    """The sentences, each replaced by the newest one that contradicts it, and the older ones."""
    newer: dict[ExtractedSentence, ExtractedSentence] = {}
    for conflict in conflicting(candidates):
        newer.setdefault(conflict.older, conflict.newer)

    def newest(sentence: ExtractedSentence) -> ExtractedSentence:
        for _ in newer:
            sentence = newer.get(sentence, sentence)
        return sentence

    latest = list(dict.fromkeys(map(newest, chosen)))
    return latest, [older for older in newer if older not in latest and newest(older) in latest]


def _ordered(question: str, chosen: Sequence[ExtractedSentence]) -> list[ExtractedSentence]:
    """By document and position, documents in the question's language first. An answer of yes or no begins
    with the sentence that decides."""
    language = language_of(question)
    first = chosen[0] if _begins(question, "asks_yes_or_no") else None
    numbers = [sentence.number for sentence in chosen]

    def place(sentence: ExtractedSentence) -> tuple[bool, int, bool, int]:
        is_foreign = (sentence.match.lang or language)[:2].lower() != language
        return is_foreign, numbers.index(sentence.number), sentence is not first, sentence.start

    return sorted(chosen, key=place)


def _with_headings(chosen: Sequence[ExtractedSentence], candidates: _Candidates) -> list[ExtractedSentence]:
    """The sentences. The heading precedes items, values and sentences that begin with a pronoun, unless it is
    a question or the heading of the sentence before."""
    shown: list[ExtractedSentence] = []
    last = (0, "")
    for sentence in chosen:
        item = candidates[sentence]
        heading = (sentence.number, item.heading)
        is_bare = item.kind is not StatementKind.SENTENCE or begins_with_pronoun(sentence.text)
        is_known = content_words(item.heading) <= content_words(f"{sentence.match.title} {sentence.text}")
        adds = is_bare and not is_known and not QUESTION.search(item.heading) and heading != last
        shown.append(replace(sentence, text=_under(item.heading, sentence.text)) if adds else sentence)
        if adds or is_known:
            last = heading
    return shown


def _under(heading: str, text: str) -> str:
    return f"{heading}: {text}" if heading else text


def _asks_for_several(question: str) -> bool:
    first, second = _first_words(question)
    if first in _WORDS["asks_how"]:
        return second not in _WORDS["quantities"]
    if first in _WORDS["asks_which"]:
        is_plural = len(second) > 3 and second.endswith("s") and not second.endswith("ss")
        return second == "are" or (is_plural and second not in _WORDS["asks_yes_or_no"])
    return first in _WORDS["asks_for_several"]


def _asks_for_something(question: str) -> bool:
    """Also words without a question mark, as in "partner api endpoints"."""
    is_question = question.rstrip().endswith(("?", "？"))
    return not is_question or _first_words(question)[0] in _WORDS["asks_which"]


def _first_words(text: str) -> tuple[str, str]:
    first, second, *_ = [*_WORD.findall(text.casefold()), "", ""]
    return first, second


def _begins(text: str, name: str) -> bool:
    return any(word in _WORDS[name] for word in _WORD.findall(text.casefold())[:1])


def _has(text: str, name: str) -> bool:
    return not _WORDS[name].isdisjoint(_WORD.findall(text.casefold()))


def _repeats(left: frozenset[str], right: frozenset[str]) -> bool:
    """Whether two sentences share most of their words (Jaccard) and differ in no number."""
    numbers = {word for word in left ^ right if any(character.isdigit() for character in word)}
    return not numbers and len(left & right) / len(left | right) >= 0.6
