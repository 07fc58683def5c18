"""Extractive answer: the best statements of the matches as paragraphs with citations."""

from collections.abc import Sequence
from dataclasses import replace

from shared.generation.cited_documents import SNIPPET_CHARACTERS, snippet
from shared.generation.conflicting_values import conflicting
from shared.generation.extractive import weights
from shared.generation.extractive.candidates import Candidates, after_heading, candidates_of
from shared.generation.extractive.choice import choose, excerpts, is_reason, newest_versions
from shared.generation.extractive.scores import SENTENCE_END, Embed, clause_of, current_scores, score
from shared.generation.passage_statements import QUESTION, StatementKind, begins_with_pronoun
from shared.generation.question_form import QuestionForm, without_replaced
from shared.generation.value_tokens import has_value
from shared.text.citation_marks import contradiction, mark, paragraph
from shared.text.language_detection import in_language_of, language_of
from shared.text.normalize import one_line
from shared.text.stemming import LETTERS, content_words, is_unspaced
from shared.types import Citation, ExtractedSentence, GeneratedText, Match

MODEL = "extractive"
# Begins an answer that is not direct, in the language of the question.
INDIRECT: dict[str, str] = {
    "en": "These passages come closest:", "de": "Diese Textstellen kommen der Frage am nächsten:",
    "fr": "Voici les passages les plus proches :", "es": "Estos son los pasajes más cercanos:",
    "nl": "Deze passages komen het dichtst bij de vraag:", "pt": "Estas são as passagens mais próximas:",
    "it": "Questi sono i passaggi più vicini:",
}  # fmt: skip
_OTHERWISE: dict[str, str] = {
    "en": "says otherwise", "de": "sagt etwas anderes", "fr": "dit autre chose", "es": "dice otra cosa",
    "nl": "zegt iets anders", "pt": "diz outra coisa", "it": "dice altro",
}  # fmt: skip
_ABSTENTION = GeneratedText("", MODEL, is_abstention=True)


def extract(
    question: str,
    matches: Sequence[Match],
    citations: Sequence[Citation],
    embed: Embed,
    vector: list[float] | None = None,
    previous: str = "",
) -> GeneratedText:
    """An answer from the matches of cited documents: at most two sentences for each part of the question, or
    a list, with a paragraph and a mark [n] for each document; with an excerpt of a passage where no sentence
    answers directly, and an abstention where none has a word of the question. `vector`: the question's
    embedding, where there is one. `previous`: the question that a follow-up continues; its words count too.
    Raises what `embed` raises, except EmbeddingQuotaExceeded."""
    previous = without_replaced(previous, question)
    both = f"{previous} {question}"
    candidates = candidates_of(both, matches, citations)
    form = QuestionForm.of(question, previous)
    indirect = in_language_of(question, INDIRECT)
    if not candidates:
        best = citations[0].match
        text = best.text.strip()
        if not _has_content(form, best, f"{best.section_title} {text}"):
            return _ABSTENTION
        return GeneratedText(f"{indirect}\n\n{_paragraph(best, [text], 1)}", MODEL, is_indirect=True)
    scores = current_scores(both, score(form, candidates, embed, vector))
    current = {sentence: candidates[sentence] for sentence in scores}
    best_ones = choose(form, current, scores)
    if not any(
        _has_content(form, one.match, after_heading(candidates[one].heading, one.text)) for one in best_ones
    ):
        return _ABSTENTION
    has_answer = not form.value or any(has_value(one.text, question) for one in best_ones)
    is_direct = has_answer and max(scores.values()) >= _least_direct_score(form, best_ones, candidates)
    conflicts = conflicting(list(candidates))
    newest, older = newest_versions(best_ones, conflicts)
    if not is_direct:
        # An excerpt is context: its other versions are no conflict.
        newest += excerpts([*newest, *older], matches, list(candidates), scores, conflicts)
    chosen = _with_headings(_ordered(form, newest), candidates)
    notes = [contradicting_note(question, sentence) for sentence in older[: weights.MAX_NOTES]]
    paragraphs = [] if is_direct else [indirect]
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
        is_indirect=not is_direct,
        has_conflict=bool(older),
    )


def _least_direct_score(
    form: QuestionForm, chosen: Sequence[ExtractedSentence], candidates: Candidates
) -> float:
    """Less for a row, the line of a form, a list, a clause of the question's number, a reason, and for one of
    several questions: they have fewer words of the question."""
    first = candidates[chosen[0]]
    lists = {(one.number, candidates[one].heading, candidates[one].kind) for one in chosen}
    is_list = first.kind is StatementKind.ITEM and len(chosen) > 1 and len(lists) == 1
    is_text = first.kind in (StatementKind.SENTENCE, StatementKind.ITEM) and not is_list
    has_reason = any(is_reason(form, one, candidates) for one in chosen)
    is_part = form.parts > 1 or clause_of(chosen[0]) in form.words
    return weights.DIRECT_SCORE_OF_PART if has_reason or is_part or not is_text else weights.DIRECT_SCORE


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
    title, text = match.title, one_line(" ".join(texts))
    # A document without a title has its first line as one, cut if it is long (documents.first_words).
    cut = title.removesuffix(" ...")
    begins = title in (text, one_line(texts[0])) or (cut != title and text.startswith(f"{cut} "))
    is_repeated = begins or (text in title and SENTENCE_END.search(text))
    return paragraph(None if is_repeated else title, match.occurred_at, texts, number)


def contradicting_note(question: str, sentence: ExtractedSentence) -> ExtractedSentence:
    match, otherwise = sentence.match, in_language_of(question, _OTHERWISE)
    return replace(sentence, text=contradiction(match.title, match.occurred_at, otherwise, sentence.text))


def _snippet(sentence: ExtractedSentence) -> str:
    """The beginning of the passage if it contains the sentence, else the text from the sentence on."""
    match = sentence.match
    start, end = sentence.start - match.span[0], sentence.end - match.span[0]
    return snippet(match.text if end <= SNIPPET_CHARACTERS else match.text[start:])


def _ordered(form: QuestionForm, chosen: Sequence[ExtractedSentence]) -> list[ExtractedSentence]:
    """By document and position, documents in the question's language first. An answer of yes or no begins
    with the sentence that decides."""
    first = chosen[0] if form.yes_or_no else None
    numbers = [sentence.number for sentence in chosen]

    def order(sentence: ExtractedSentence) -> tuple[bool, int, bool, int]:
        return (
            _is_foreign(form, sentence.match),
            numbers.index(sentence.number),
            sentence is not first,
            sentence.start,
        )

    return sorted(chosen, key=order)


def _with_headings(chosen: Sequence[ExtractedSentence], candidates: Candidates) -> list[ExtractedSentence]:
    """The sentences. The heading precedes items, values and sentences that begin with a pronoun, unless it is
    a question or the heading of the sentence before."""
    shown: list[ExtractedSentence] = []
    last = (0, "")
    for sentence in chosen:
        item = candidates[sentence]
        heading = (sentence.number, item.heading)
        is_bare = item.kind is not StatementKind.SENTENCE or begins_with_pronoun(
            sentence.text, sentence.match.lang
        )
        is_known = content_words(item.heading) <= content_words(f"{sentence.match.title} {sentence.text}")
        adds = is_bare and not is_known and not QUESTION.search(item.heading) and heading != last
        shown.append(replace(sentence, text=after_heading(item.heading, sentence.text)) if adds else sentence)
        if adds or is_known:
            last = heading
    return shown
