"""Scores of an extractive answer's candidates.

The score of a statement is its similarity to the question (cosine of their embeddings) and its share of the
question's words, weighted by rarity, which finds identifiers and numbers. Words of the title and the section
count half.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from operator import mul

from shared.errors import EmbeddingQuotaExceeded
from shared.generation.document_versions import is_newer_version, names_version
from shared.generation.extractive import weights
from shared.generation.extractive.candidates import Candidates, after_heading, context_words
from shared.generation.passage_statements import Statement, StatementKind
from shared.generation.question_form import QuestionForm
from shared.generation.value_tokens import has_value
from shared.models.embedding_roles import Role, Roles, each_role
from shared.text.stemming import content_words
from shared.types import ExtractedSentence

# The number of a clause, at its beginning.
_NUMBER = re.compile(r"\d{1,3}(?:\.\d{1,3})+")
SENTENCE_END = re.compile(r"[.!?。！？]\W*$")
_CLAUSE = re.compile(rf"\(?({_NUMBER.pattern})[.)]?\s")
Embed = Callable[[Sequence[str], Roles], list[list[float]]]
Scores = Mapping[ExtractedSentence, float]


def score(form: QuestionForm, candidates: Candidates, embed: Embed, vector: list[float] | None) -> Scores:
    """By the words alone for an org that has used up its tokens for embeddings."""
    frequency = Counter(word for candidate in candidates for word in candidate.words)
    # Words of the previous question alone are context.
    shares_of_words = dict.fromkeys(form.words, weights.SHARE_OF_CONTEXT)
    shares_of_words |= dict.fromkeys(form.words & content_words(form.text), 1.0)
    rarity = {
        word: weight * math.log(1 + len(candidates) / (1 + frequency[word]))
        for word, weight in shares_of_words.items()
    }
    total = sum(rarity.values()) or 1.0

    headings = frozenset[str]().union(*(content_words(item.heading) for item in candidates.values()))
    clauses = {word for word in form.words if _NUMBER.fullmatch(word)}

    def coverage(sentence: ExtractedSentence, item: Statement) -> float:
        if clause_of(sentence) in clauses:
            return 1.0
        passage = sentence.match.text.casefold()
        names = {word for word in form.names if word in passage}
        own = sentence.words if item.stands_alone else sentence.words | content_words(item.heading)
        # A form has the name of its subject in one line, unless a heading divides the subjects.
        own = own | names - headings if item.kind is StatementKind.FACT else own
        context = context_words(sentence, item) | names
        shares = dict.fromkeys(context, weights.SHARE_OF_CONTEXT) | dict.fromkeys(own, 1.0)
        return sum(weight * shares.get(word, 0.0) for word, weight in rarity.items()) / total

    def share(sentence: ExtractedSentence, item: Statement) -> float:
        lacks_value = form.value and not has_value(sentence.text, form.text)
        is_other_clause = clauses and clause_of(sentence) not in {"", *clauses}
        factors = (
            (weights.SHARE_OF_SIBLING, is_other_clause or form.names_sibling_in(sentence.words)),
            (weights.SHARE_WITHOUT_VALUE, lacks_value or _repeats_question(form, sentence, item)),
            (weights.SHARE_OF_TITLE, _is_title(sentence)),
        )
        return math.prod(factor for factor, applies in factors if applies)

    similarities = _similarities(form, candidates, embed, vector)
    if similarities is None:
        return {one: share(one, item) * coverage(one, item) for one, item in candidates.items()}
    return {
        sentence: share(sentence, item)
        * (weights.SIMILARITY_WEIGHT * similarity + weights.WORD_WEIGHT * coverage(sentence, item))
        for (sentence, item), similarity in zip(candidates.items(), similarities, strict=True)
    }


def _similarities(
    form: QuestionForm, candidates: Candidates, embed: Embed, vector: list[float] | None
) -> list[float] | None:
    """Of each candidate to the question; None for an org that has used up its tokens for embeddings."""
    # Alone, an item, a row or an answer seldom names its subject.
    texts = [
        sentence.text if item.stands_alone else after_heading(item.heading, sentence.text)
        for sentence, item in candidates.items()
    ]
    try:
        if vector is None:
            roles = [Role.QUESTION, *each_role(Role.DOCUMENT, texts)]
            vector, *vectors = embed([form.text, *texts], roles)
        else:
            vectors = embed(texts, Role.DOCUMENT)
    except EmbeddingQuotaExceeded:
        return None
    if any(len(other) != len(vector) for other in vectors):
        raise ValueError("vectors of several lengths")
    return [sum(map(mul, vector, other)) for other in vectors]


def clause_of(sentence: ExtractedSentence) -> str:
    clause = _CLAUSE.match(sentence.text)
    return clause[1] if clause else ""


def _repeats_question(form: QuestionForm, sentence: ExtractedSentence, item: Statement) -> bool:
    """Whether the value of a key is in the question: "Name: Ann Lee" for a question about Ann Lee."""
    key, _, value = sentence.text.rpartition(": ")
    words = content_words(value)
    is_text = item.kind is not StatementKind.ROW and not any(map(str.isdigit, value))
    # "Who is Ann Lee?" asks for nothing else.
    asks_more = not form.words <= form.names
    return bool(key) and is_text and asks_more and 2 * len(words & form.words) >= len(words)


def _is_title(sentence: ExtractedSentence) -> bool:
    """Not the first sentence of a document without a title, which is called by it, and may be the answer."""
    return sentence.words <= content_words(sentence.match.title) and not SENTENCE_END.search(sentence.text)


def current_scores(question: str, scores: Scores) -> Scores:
    """The scores of sentences without a similar one in a newer version of their document. A version that the
    question names is current."""

    def is_current(sentence: ExtractedSentence) -> bool:
        return names_version(question, sentence.match) or not any(
            score >= weights.MIN_SHARE * scores[sentence] and is_newer_version(other.match, sentence.match)
            for other, score in scores.items()
        )

    return {sentence: score for sentence, score in scores.items() if is_current(sentence)}
