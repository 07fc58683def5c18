"""Choice of an extractive answer's statements: a list, or the best sentences that add to each other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from shared.generation.conflicting_values import ValueConflict
from shared.generation.extractive import weights
from shared.generation.extractive.candidates import Candidates, after_heading, context_words
from shared.generation.extractive.scores import Scores
from shared.generation.grounding.proper_names import names_in
from shared.generation.passage_statements import StatementKind, begins_with_pronoun
from shared.generation.question_form import QuestionForm, has_word
from shared.text.stemming import content_words
from shared.types import ExtractedSentence, Match


def choose(form: QuestionForm, candidates: Candidates, scores: Scores) -> list[ExtractedSentence]:
    """A list if the question asks for one, else the best statements that add to each other, each with what
    follows from it, without repetitions. The best comes first. Another part of the question gets
    the statement with most of its words."""
    after = {
        one: other
        for one, other in pairwise(candidates)
        if one.number == other.number and 0 <= other.start - one.end <= weights.MAX_GAP
    }
    if items := _best_list(form, _lists(candidates, after), candidates, scores):
        return items
    chosen = _Statements(form, candidates, scores, after, max(scores.values())).that_add_to_each_other()
    return chosen + _of_missing_parts(form, candidates, scores, chosen)


@dataclass(frozen=True, slots=True)
class _Statements:
    """`after`: the next statement of the same paragraph or list; `best`: the best score."""

    form: QuestionForm
    candidates: Candidates
    scores: Scores
    after: Mapping[ExtractedSentence, ExtractedSentence]
    best: float

    def that_add_to_each_other(self) -> list[ExtractedSentence]:
        ranked = sorted(self.candidates, key=lambda item: -self.scores[item])
        ranked.insert(0, next(filter(self._decides_or_explains, ranked), ranked[0]))
        chosen: list[ExtractedSentence] = []
        covered = frozenset[str]()
        # A limit does not take the place of an answer.
        room = weights.MAX_SENTENCES * self.form.parts
        for candidate in ranked:
            adds = self.form.words & candidate.words - covered
            share = weights.MIN_SHARE if adds else weights.MIN_SHARE_OF_REPEATED
            if chosen and not self._has_share(share, candidate):
                continue
            if not room:
                break
            follower = self.after.get(candidate)
            for item in (candidate, follower) if follower and self._follows(follower) else (candidate,):
                is_limit = item is follower and has_word(item.text, "limits", item.match.lang)
                if (room or is_limit) and not any(_repeats(item.words, other.words) for other in chosen):
                    chosen.append(item)
                    covered |= _all_words(item, self.candidates)
                    room -= not is_limit
        return chosen

    def _decides_or_explains(self, sentence: ExtractedSentence) -> bool:
        return (self._decides(sentence) and self._has_share(weights.MIN_SHARE_OF_DECIDER, sentence)) or (
            is_reason(self.form, sentence, self.candidates)
            and self._has_share(weights.MIN_SHARE_OF_REASON, sentence)
        )

    def _follows(self, sentence: ExtractedSentence) -> bool:
        """Whether a statement belongs to the chosen one before it."""
        begins_with_name = names_in(" ".join(sentence.text.split()[:3]))
        has_subject = begins_with_name and not begins_with_pronoun(sentence.text, sentence.match.lang)
        is_of_another = has_subject and not self.form.names <= _all_words(sentence, self.candidates)
        refers_back = begins_with_pronoun(sentence.text, sentence.match.lang, weights.PRONOUN_WORDS)
        share = weights.MIN_SHARE_OF_PRONOUN if refers_back else weights.MIN_SHARE
        return (
            self.candidates[sentence].kind is StatementKind.SENTENCE
            and not is_of_another
            and (
                self._has_share(share, sentence)
                or has_word(sentence.text, "limits", sentence.match.lang)
                or self._decides(sentence)
                or is_reason(self.form, sentence, self.candidates)
            )
        )

    def _has_share(self, share: float, sentence: ExtractedSentence) -> bool:
        """Whether the statement has that share of the best score."""
        return self.scores[sentence] >= share * self.best

    def _decides(self, sentence: ExtractedSentence) -> bool:
        return self.form.yes_or_no and has_word(sentence.text, "decides", sentence.match.lang)


def is_reason(form: QuestionForm, sentence: ExtractedSentence, candidates: Candidates) -> bool:
    """Whether the question asks for a reason and the statement or its heading gives one."""
    text = after_heading(candidates[sentence].heading, sentence.text)
    return form.reason and has_word(text, "reason", sentence.match.lang)


def _of_missing_parts(
    form: QuestionForm, candidates: Candidates, scores: Scores, chosen: Sequence[ExtractedSentence]
) -> list[ExtractedSentence]:
    """For each part of the question of which the chosen ones lack half of the words, the statement with most
    of them."""
    added: list[ExtractedSentence] = []
    covered = frozenset[str]().union(*(_all_words(one, candidates) for one in chosen))
    # A single word ("and to what amount?") is in sentences on other things.
    for words in [words for words in form.words_of_parts if form.parts > 1 and len(words) > 1]:
        missing = words - covered
        counts = {one: len(words & _all_words(one, candidates)) for one in candidates}
        best = max(candidates, key=lambda one: (counts[one], scores[one]))
        if 2 * len(missing) >= len(words) and missing & best.words and 2 * counts[best] >= len(words):
            added.append(best)
            covered |= best.words
    return added


def _all_words(sentence: ExtractedSentence, candidates: Candidates) -> frozenset[str]:
    return sentence.words | context_words(sentence, candidates[sentence])


def excerpts(
    chosen: Sequence[ExtractedSentence],
    matches: Sequence[Match],
    candidates: Sequence[ExtractedSentence],
    scores: Scores,
    conflicts: Sequence[ValueConflict],
) -> list[ExtractedSentence]:
    """Of three passages the statement with the best score, to which the passage's rank adds, and the nearest
    ones of the passage, without those that another one repeats or that a newer one contradicts. `matches`:
    best first."""
    ranks = {match.chunk_id: rank for rank, match in enumerate(matches, start=1)}
    ranked = sorted(scores, key=lambda one: -scores[one] - weights.RANK_WEIGHT / ranks[one.match.chunk_id])
    best_of: dict[str, ExtractedSentence] = {}
    for one in ranked:
        best_of.setdefault(one.match.chunk_id, one)
    outdated = {conflict.older for conflict in conflicts}
    added: list[ExtractedSentence] = []
    for best in list(best_of.values())[: weights.EXCERPTS]:
        passage = [one for one in candidates if one.match is best.match]
        middle = passage.index(best)
        # Of two equally near ones the later first.
        positions = sorted(range(len(passage)), key=lambda at: (abs(at - middle), at < middle))
        nearest = [passage[at] for at in positions]
        lengths = accumulate(len(one.text) for one in nearest)
        added += [
            replace(one, is_excerpt=True)
            for one, length in zip(nearest, lengths, strict=True)
            if length <= weights.EXCERPT_CHARACTERS
            and one not in outdated
            and not any(_repeats(one.words, other.words) for other in (*chosen, *added))
        ]
    return added


def _lists(
    candidates: Candidates, after: Mapping[ExtractedSentence, ExtractedSentence]
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
    return [items[: weights.MAX_ITEMS] for items in lists if len(items) > 1]


def _best_list(
    form: QuestionForm, lists: Sequence[list[ExtractedSentence]], candidates: Candidates, scores: Scores
) -> list[ExtractedSentence]:
    """The best list, by its best item and the question's words in it. None if the question asks for one
    thing, or if a statement is better."""
    words, best_score = form.words, max(scores.values())

    def best_of(items: Sequence[ExtractedSentence]) -> float:
        return max(scores[item] for item in items)

    def score(items: Sequence[ExtractedSentence]) -> float:
        covered = words & context_words(items[0], candidates[items[0]]).union(*(item.words for item in items))
        return best_of(items) + weights.LIST_WORD_WEIGHT * len(covered) / max(1, len(words))

    def is_under_its_heading(items: Sequence[ExtractedSentence]) -> bool:
        heading = words & content_words(candidates[items[-1]].heading)
        title = words & content_words(items[0].match.title)
        return (
            len(heading | title) >= weights.MIN_SHARE_OF_HEADING * len(words)
            and not heading <= title
            and best_of(items) >= weights.MIN_SHARE * best_score
        )

    def is_compared(items: Sequence[ExtractedSentence]) -> bool:
        is_table = candidates[items[0]].kind is StatementKind.ROW
        return form.superlative and is_table and best_of(items) >= weights.MIN_SHARE * best_score

    if not form.several:
        lists = [
            items for items in lists if is_compared(items) or (form.something and is_under_its_heading(items))
        ]
    best = max(lists, key=score, default=[])
    return best if best and score(best) >= best_score else []


def _repeats(left: frozenset[str], right: frozenset[str]) -> bool:
    """Whether two sentences share most of their words (Jaccard) and differ in no number."""
    numbers = {word for word in left ^ right if any(character.isdigit() for character in word)}
    return not numbers and len(left & right) / len(left | right) >= weights.REPEATED_SHARE


def newest_versions(
    chosen: Sequence[ExtractedSentence], conflicts: Sequence[ValueConflict]
) -> tuple[list[ExtractedSentence], list[ExtractedSentence]]:
    """The sentences, each replaced by the newest one that contradicts it, and the older ones."""
    newer: dict[ExtractedSentence, ExtractedSentence] = {}
    for conflict in conflicts:
        newer.setdefault(conflict.older, conflict.newer)

    def newest(sentence: ExtractedSentence) -> ExtractedSentence:
        for _ in newer:
            sentence = newer.get(sentence, sentence)
        return sentence

    latest = list(dict.fromkeys(map(newest, chosen)))
    return latest, [older for older in newer if older not in latest and newest(older) in latest]
