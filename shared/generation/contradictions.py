"""Notes on documents that contradict a model's answer: other values than those of its evidence."""

from collections.abc import Iterable, Sequence

from shared.generation.cited_documents import cite
from shared.generation.conflicting_values import conflicting
from shared.generation.extractive.answer import contradicting_note
from shared.generation.extractive.candidates import candidates_of
from shared.generation.extractive.weights import MAX_NOTES
from shared.generation.grounding.types import CheckResult
from shared.generation.value_tokens import tokens_of
from shared.types import ExtractedSentence, Match


def contradictions(question: str, matches: Sequence[Match], answer: Iterable[CheckResult]) -> tuple[str, ...]:
    """A note for each sentence of the cited documents that gives another value than a sentence of the answer,
    whose evidence is a sentence of another document."""
    checked = list(answer)

    def is_stated(sentence: ExtractedSentence, values: frozenset[str]) -> bool:
        """Whether the answer rests on the sentence and has one of these values."""
        return any(
            matches[evidence.match_index].document_id == sentence.match.document_id
            and evidence.start < sentence.end
            and sentence.start < evidence.end
            and values & {*tokens_of(result.text)}
            for result in checked
            for evidence in result.evidence
        )

    others: dict[ExtractedSentence, None] = {}
    for conflict in conflicting(list(candidates_of(question, matches, cite(matches)))):
        if is_stated(conflict.newer, conflict.newer_values):
            others[conflict.older] = None
        elif is_stated(conflict.older, conflict.older_values):
            others[conflict.newer] = None
    return tuple(contradicting_note(question, sentence).text for sentence in [*others][:MAX_NOTES])
