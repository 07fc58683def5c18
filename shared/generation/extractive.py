"""Extractive answers: the best statements of the matches, with citations.

The score of a statement is its similarity to the question (cosine of their embeddings) and its share of the
question's words, weighted by rarity, which finds identifiers and numbers. Words of the title and the section
count half.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from shared.errors import EmbeddingQuotaExceeded
from shared.generation.cited_documents import SNIPPET_CHARACTERS, snippet
from shared.generation.conflicting_values import conflicting, has_value, is_newer_version, names_version
from shared.generation.grounding.proper_names import names_in
from shared.generation.passage_statements import (
    QUESTION,
    Statement,
    StatementKind,
    begins_with_pronoun,
    statements,
)
from shared.generation.question_form import QuestionForm, has_word, without_replaced
from shared.text.citation_marks import contradiction, mark, paragraph
from shared.text.language_detection import Language, language_of
from shared.text.stemming import LETTERS, content_words, is_unspaced
from shared.types import Citation, ExtractedSentence, GeneratedText, Match

MODEL = "extractive"
MAX_SENTENCES, MAX_ITEMS, MAX_NOTES = 2, 10, 2
# The least share of the best score, and that of a next sentence with a pronoun among its first words ("If she
# cannot be reached, ...").
MIN_SHARE, MIN_SHARE_OF_PRONOUN, PRONOUN_WORDS = 0.76, 0.4, 4
# Minimum share of a sentence that adds no further word of the question.
MIN_SHARE_OF_REPEATED = 0.9
# The least share of a sentence that comes first because it decides between yes and no, or gives the reason.
MIN_SHARE_OF_DECIDER, MIN_SHARE_OF_REASON = 0.85, 0.3
# An answer whose best score is lower begins with INDIRECT.
DIRECT_SCORE = 0.5
INDIRECT = "These passages come closest:"
SIMILARITY_WEIGHT, WORD_WEIGHT = 0.55, 0.45
# Factors of a statement's score: for a sibling's identifier (E-55 for E-17); for a missing number that the
# question asks for.
SHARE_OF_SIBLING, SHARE_WITHOUT_VALUE = 0.3, 0.7
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
_ABSTENTION = GeneratedText("", MODEL, is_abstention=True)

Embed = Callable[[Sequence[str]], list[list[float]]]
_Candidates = dict[ExtractedSentence, Statement]
_Scores = Mapping[ExtractedSentence, float]


def extract(
    question: str,
    matches: Sequence[Match],
    citations: Sequence[Citation],
    embed: Embed,
    vector: list[float] | None = None,
    previous: str = "",
) -> GeneratedText:
    """An answer from the matches of cited documents: at most two sentences for each part of the question, or
    a list, with a paragraph and a mark [n] for each document; an abstention where no sentence has a word of
    the question. `vector`: the question's embedding, where there is one. `previous`: the question that a
    follow-up continues; its words count too. Raises what `embed` raises, except EmbeddingQuotaExceeded."""
    previous = without_replaced(previous, question)
    both = f"{previous} {question}"
    candidates = candidates_of(both, matches, citations)
    form = QuestionForm.of(question, previous)
    if not candidates:
        best = citations[0].match
        text = best.text.strip()
        if not _has_content(form, best, f"{best.section_title} {text}"):
            return _ABSTENTION
        return GeneratedText(f"{INDIRECT}\n\n{_paragraph(best, [text], 1)}", MODEL)
    scores = _current(both, _scores(form, candidates, embed, vector))
    is_direct = max(scores.values()) >= DIRECT_SCORE
    current = {sentence: candidates[sentence] for sentence in scores}
    best_ones = _choose(form, current, scores)
    if not any(_has_content(form, one.match, _under(candidates[one].heading, one.text)) for one in best_ones):
        return _ABSTENTION
    newest, older = _newest(best_ones, list(candidates))
    chosen = _with_headings(_ordered(form, newest), candidates)
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


def _has_content(form: QuestionForm, match: Match, text: str) -> bool:
    """Whether the text, or its document's title, has a word of the question, perhaps in a compound
    ("Jahresurlaub"). Words cannot tell for a text in another language, nor in a script without spaces."""
    if not form.words or any(map(is_unspaced, form.words)) or _is_foreign(form, match):
        return True
    whole = f"{match.title} {text}"
    folded = whole.casefold()
    return not form.words.isdisjoint(content_words(whole)) or any(
        len(word) >= LETTERS and word in folded for word in form.words
    )


def _is_foreign(form: QuestionForm, match: Match) -> bool:
    """Whether the document is in another language than the question."""
    language = language_of(form.text)
    return (match.lang or language)[:2].lower() != language


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
    has. The names of columns hold for all rows."""
    cells: dict[tuple[int, str], dict[ExtractedSentence, frozenset[str]]] = defaultdict(dict)
    for sentence, item in candidates.items():
        if item.kind is StatementKind.ROW:
            first = sentence.match.span[0]
            row = sentence.match.text[sentence.start - first : sentence.end - first]
            cells[sentence.number, item.heading][sentence] = (words & content_words(row)) - content_words(
                item.columns
            )
    worse = {
        sentence
        for rows in cells.values()
        for sentence, own in rows.items()
        if any(own < other for other in rows.values())
    }
    return {sentence: item for sentence, item in candidates.items() if sentence not in worse}


def _scores(form: QuestionForm, candidates: _Candidates, embed: Embed, vector: list[float] | None) -> _Scores:
    """By the words alone for an org that has used up its tokens for embeddings."""
    # Alone, an item, a row or an answer seldom names its subject.
    texts = [
        sentence.text if item.stands_alone else _under(item.heading, sentence.text)
        for sentence, item in candidates.items()
    ]
    try:
        if vector is None:
            vector, *vectors = embed([form.text, *texts])
        else:
            vectors = embed(texts)
    except EmbeddingQuotaExceeded:
        vectors = None
    frequency = Counter(word for candidate in candidates for word in candidate.words)
    # Words of the previous question alone are context.
    weights = dict.fromkeys(form.words, SHARE_OF_CONTEXT) | dict.fromkeys(content_words(form.text), 1.0)
    rarity = {
        word: weight * math.log(1 + len(candidates) / (1 + frequency[word]))
        for word, weight in weights.items()
    }
    total = sum(rarity.values()) or 1.0

    def coverage(sentence: ExtractedSentence, item: Statement) -> float:
        passage = sentence.match.text.casefold()
        own = sentence.words if item.stands_alone else sentence.words | content_words(item.heading)
        context = _context(sentence, item) | {word for word in form.names if word in passage}
        shares = dict.fromkeys(context, SHARE_OF_CONTEXT) | dict.fromkeys(own, 1.0)
        return sum(weight * shares.get(word, 0.0) for word, weight in rarity.items()) / total

    def share(sentence: ExtractedSentence) -> float:
        lacks_value = form.value and not has_value(sentence.text)
        return (SHARE_OF_SIBLING if form.names_sibling_in(sentence.words) else 1.0) * (
            SHARE_WITHOUT_VALUE if lacks_value else 1.0
        )

    if vector is None or vectors is None:
        return {sentence: share(sentence) * coverage(sentence, item) for sentence, item in candidates.items()}

    def similarity(other: Sequence[float]) -> float:
        return sum(a * b for a, b in zip(vector, other, strict=True))

    return {
        sentence: share(sentence)
        * (SIMILARITY_WEIGHT * similarity(other) + WORD_WEIGHT * coverage(sentence, item))
        for (sentence, item), other in zip(candidates.items(), vectors, strict=True)
    }


def _current(question: str, scores: _Scores) -> _Scores:
    """The scores of sentences without a similar one in a newer version of their document. A version that the
    question names is current."""

    def is_current(sentence: ExtractedSentence) -> bool:
        return names_version(question, sentence.match) or not any(
            score >= MIN_SHARE * scores[sentence] and is_newer_version(other.match, sentence.match)
            for other, score in scores.items()
        )

    return {sentence: score for sentence, score in scores.items() if is_current(sentence)}


def _choose(form: QuestionForm, candidates: _Candidates, scores: _Scores) -> list[ExtractedSentence]:
    """A list if the question asks for one, else the best statements that add to each other, each with what
    follows from it, without repetitions. The best comes first."""
    best = max(scores.values())
    after = {
        one: other
        for one, other in pairwise(candidates)
        if one.number == other.number and 0 <= other.start - one.end <= MAX_GAP
    }
    if items := _best_list(form, _lists(candidates, after), candidates, scores):
        return items

    def decides(sentence: ExtractedSentence) -> bool:
        return form.yes_or_no and has_word(sentence.text, "decides")

    def is_reason(sentence: ExtractedSentence) -> bool:
        return form.reason and has_word(_under(candidates[sentence].heading, sentence.text), "reason")

    def answers(sentence: ExtractedSentence) -> bool:
        return (decides(sentence) and scores[sentence] >= MIN_SHARE_OF_DECIDER * best) or (
            is_reason(sentence) and scores[sentence] >= MIN_SHARE_OF_REASON * best
        )

    def follows(sentence: ExtractedSentence) -> bool:
        begins_with_name = names_in(" ".join(sentence.text.split()[:3]))
        is_of_another = begins_with_name and not form.names <= sentence.words | _context(
            sentence, candidates[sentence]
        )
        refers_back = begins_with_pronoun(sentence.text, PRONOUN_WORDS)
        share = MIN_SHARE_OF_PRONOUN if refers_back else MIN_SHARE
        return (
            candidates[sentence].kind is StatementKind.SENTENCE
            and not is_of_another
            and (
                scores[sentence] >= share * best
                or has_word(sentence.text, "limits")
                or decides(sentence)
                or is_reason(sentence)
            )
        )

    ranked = sorted(candidates, key=lambda item: -scores[item])
    ranked.insert(0, next(filter(answers, ranked), ranked[0]))
    chosen: list[ExtractedSentence] = []
    covered = frozenset[str]()
    # A limit does not take the place of an answer.
    room = MAX_SENTENCES * form.parts
    for candidate in ranked:
        share = MIN_SHARE if form.words & candidate.words - covered else MIN_SHARE_OF_REPEATED
        if chosen and scores[candidate] < share * best:
            continue
        if not room:
            break
        follower = after.get(candidate)
        for item in (candidate, follower) if follower and follows(follower) else (candidate,):
            is_limit = item is follower and has_word(item.text, "limits")
            if (room or is_limit) and not any(_repeats(item.words, other.words) for other in chosen):
                chosen.append(item)
                covered |= item.words | _context(item, candidates[item])
                room -= not is_limit
    return chosen


def _context(sentence: ExtractedSentence, item: Statement) -> frozenset[str]:
    return content_words(f"{sentence.match.title} {item.heading}")


def _lists(
    candidates: _Candidates, after: Mapping[ExtractedSentence, ExtractedSentence]
) -> list[list[ExtractedSentence]]:
    """The lists of two items or more, and the tables of two rows or more."""
    before = {other: one for one, other in after.items()}
    lists: list[list[ExtractedSentence]] = []
    for sentence, item in candidates.items():
        previous = before.get(sentence)
        if item.kind not in (StatementKind.ITEM, StatementKind.ROW):
            continue
        if previous and candidates[previous].kind is item.kind:
            lists[-1].append(sentence)
        else:
            lists.append([sentence])
    return [items[:MAX_ITEMS] for items in lists if len(items) > 1]


def _best_list(
    form: QuestionForm, lists: Sequence[list[ExtractedSentence]], candidates: _Candidates, scores: _Scores
) -> list[ExtractedSentence]:
    """The best list, by its best item and the question's words in it. None if the question asks for one
    thing, or if a statement is better."""
    words, best_score = form.words, max(scores.values())

    def score(items: Sequence[ExtractedSentence]) -> float:
        covered = words & _context(items[0], candidates[items[0]]).union(*(item.words for item in items))
        return max(scores[item] for item in items) + LIST_WORD_WEIGHT * len(covered) / max(1, len(words))

    def is_under_its_heading(items: Sequence[ExtractedSentence]) -> bool:
        heading = words & content_words(candidates[items[-1]].heading)
        title = words & content_words(items[0].match.title)
        return (
            len(heading | title) >= MIN_SHARE_OF_HEADING * len(words)
            and not heading <= title
            and max(scores[item] for item in items) >= MIN_SHARE * best_score
        )

    def is_compared(items: Sequence[ExtractedSentence]) -> bool:
        is_table = candidates[items[0]].kind is StatementKind.ROW
        return form.superlative and is_table and max(map(scores.__getitem__, items)) >= MIN_SHARE * best_score

    if not form.several:
        lists = [
            items for items in lists if is_compared(items) or (form.something and is_under_its_heading(items))
        ]
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


def _ordered(form: QuestionForm, chosen: Sequence[ExtractedSentence]) -> list[ExtractedSentence]:
    """By document and position, documents in the question's language first. An answer of yes or no begins
    with the sentence that decides."""
    first = chosen[0] if form.yes_or_no else None
    numbers = [sentence.number for sentence in chosen]

    def place(sentence: ExtractedSentence) -> tuple[bool, int, bool, int]:
        return (
            _is_foreign(form, sentence.match),
            numbers.index(sentence.number),
            sentence is not first,
            sentence.start,
        )

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


def _repeats(left: frozenset[str], right: frozenset[str]) -> bool:
    """Whether two sentences share most of their words (Jaccard) and differ in no number."""
    numbers = {word for word in left ^ right if any(character.isdigit() for character in word)}
    return not numbers and len(left & right) / len(left | right) >= 0.6
