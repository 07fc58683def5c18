"""Context of names and values: the words around them in an assertion and in the passages.

A window may have all words of an assertion in which a name is exchanged for another name of the passage. So
the sentences with the assertion's name are compared with those that have another one: the name belongs where
most of the words around it are. The same holds for the value of "label: value", and a sentence with the value
must share the label: the words of a long value alone are most of the assertion's.
"""

from collections.abc import Callable, Collection, Iterator
from functools import partial

from shared.generation.grounding.evidence_windows import EvidencePassage, EvidencePassages, EvidenceSentence
from shared.generation.grounding.facts import facts_in, forms_of
from shared.generation.grounding.proper_names import names_in
from shared.generation.grounding.terms import content_stems, is_function_word, words_in
from shared.text.word_lists import word_sets

# The content words on each side of a name that are its context.
WIDTH = 4
# By how much a sentence without the name, or the value, must exceed those with it in their share of the
# context. Fitted on one half of the data of bench/eval_support.py.
NAME_MARGIN, VALUE_MARGIN = 0.5, 0.3
# A shorter label has too few words to compare; with more words, "label: value" is a sentence with a colon.
MIN_LABEL_STEMS, MAX_LABEL_AND_VALUE_WORDS = 3, 30
# The share of its words that a sentence with the value has, and the share of the label that one of them has.
MIN_VALUE_SHARE, MIN_LABEL_SHARE = 0.6, 0.25
# A pronoun among so many first words of a sentence may stand for a name among those of the sentence before.
PRONOUN_WORDS, SUBJECT_WORDS = 4, 5
_PRONOUNS = word_sets(__file__)["pronouns"]


def is_out_of_context(text: str, names: Collection[str], passages: EvidencePassages) -> bool:
    """Whether a sentence without a name, or without the value, of the text shares clearly more of its context
    than each sentence with it, or those with the value share too little. A sentence without the name must
    have another one instead."""
    words = words_in(text)
    return _is_value_out_of_context(text, passages) or any(
        _is_name_out_of_context(name, context, words, passages)
        for name, context in _names_with_context(words, names)
    )


def _names_with_context(
    words: list[str], names: Collection[str]
) -> Iterator[tuple[list[str], frozenset[str]]]:
    """The words of each name, and the stems around them."""
    end = 0
    for start in range(len(words)):
        if start < end or words[start] not in names:
            continue
        end = next((index for index in range(start, len(words)) if words[index] not in names), len(words))
        before = [word for word in words[:start] if not is_function_word(word)][-WIDTH:]
        after = [word for word in words[end:] if not is_function_word(word)][:WIDTH]
        name = words[start:end]
        yield name, content_stems([*before, *after]) - content_stems(name)


def _is_name_out_of_context(
    name: list[str], context: frozenset[str], words: list[str], passages: EvidencePassages
) -> bool:
    best, others = _shares(context, passages, partial(_has_name, name))
    return best is not None and any(
        share > best + NAME_MARGIN and not {*names_in(passage.text_of(sentence))} <= {*words}
        for share, passage, sentence in others
    )


def _has_name(name: list[str], passage: EvidencePassage, index: int) -> bool:
    """Whether the sentence has the last word of the name or a pronoun for it, or the title a word of it."""
    words = passage.sentences[index].words
    if index and not _PRONOUNS.isdisjoint(words[:PRONOUN_WORDS]):
        words += passage.sentences[index - 1].words[:SUBJECT_WORDS]
    return name[-1] in words or not passage.heading.isdisjoint(name)


def _is_value_out_of_context(text: str, passages: EvidencePassages) -> bool:
    label, _, value = text.rpartition(": ")
    context, stems, facts = content_stems(words_in(label)), content_stems(words_in(value)), facts_in(value)
    if len(context) < MIN_LABEL_STEMS or len(text.split()) > MAX_LABEL_AND_VALUE_WORDS:
        return False

    def has_value(passage: EvidencePassage, index: int) -> bool:
        sentence = passage.sentences[index]
        if passages.share(sentence.stems, stems) < MIN_VALUE_SHARE:
            return False
        forms = forms_of(facts_in(passage.text_of(sentence))) if facts else frozenset[str]()
        return all(fact.accepted & forms for fact in facts)

    best, others = _shares(context, passages, has_value)
    return best is not None and (
        best < MIN_LABEL_SHARE or any(share > best + VALUE_MARGIN for share, _, _ in others)
    )


def _shares(
    context: frozenset[str], passages: EvidencePassages, has_part: Callable[[EvidencePassage, int], bool]
) -> tuple[float | None, list[tuple[float, EvidencePassage, EvidenceSentence]]]:
    """The highest share of the context that a sentence with the part has, None if none has the part; and the
    share of each other sentence."""
    best: float | None = None
    others: list[tuple[float, EvidencePassage, EvidenceSentence]] = []
    for passage in passages.all:
        for index, sentence in enumerate(passage.sentences):
            share = passages.share(sentence.stems | passage.context_stems, context)
            if has_part(passage, index):
                best = max(best or 0.0, share)
            else:
                others.append((share, passage, sentence))
    return best, others
