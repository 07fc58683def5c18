"""Notes on documents that contradict a model's answer: other values than those of its evidence."""

import re
from collections.abc import Iterable, Sequence

from shared.generation.citations import cite
from shared.generation.conflicting_values import conflicting
from shared.generation.extractive import MAX_NOTES, candidates_of, contradicting_note
from shared.generation.grounding.types import CheckResult
from shared.types import ExtractedSentence, Match

_WORD = re.compile(r"\w+(?:[-./,:]\w+)*")


def contradictions(question: str, matches: Sequence[Match], answer: Iterable[CheckResult]) -> tuple[str, ...]:
    """A note for each sentence of the cited documents that gives another value than a sentence of the answer,
    whose evidence is a sentence of another document."""
    checked = list(answer)

    def is_stated(one: ExtractedSentence, other: ExtractedSentence) -> bool:
        """Whether the answer rests on the first sentence and has a value that only this one has."""
        values = _words(one.text) - _words(other.text)
        return any(
            matches[evidence.match_index].document_id == one.match.document_id
            and evidence.start < one.end
            and one.start < evidence.end
            and values & _words(result.text)
            for result in checked
            for evidence in result.evidence
        )

    others: dict[ExtractedSentence, None] = {}
    for conflict in conflicting(list(candidates_of(question, matches, cite(matches)))):
        if is_stated(conflict.newer, conflict.older):
            others[conflict.older] = None
        elif is_stated(conflict.older, conflict.newer):
            others[conflict.newer] = None
    return tuple(contradicting_note(question, sentence).text for sentence in [*others][:MAX_NOTES])


def _words(text: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(text)}
