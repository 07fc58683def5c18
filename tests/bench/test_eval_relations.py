"""The record of judged relations: its shares, its agreement, and the confidence that follows from it."""

import pytest

from bench.eval_relations import DATASETS, Reading, Share, agreement, confidence, readings, still_read
from shared.graph.types import CONFIDENCE


def reading(*verdicts: str, kind: str = "handbook", statement: str = "A OWNED_BY B") -> Reading:
    subject, relation, object_ = statement.split(" ")
    return Reading(
        kind, "set", "document", subject, relation, object_, dict(zip("abc", verdicts, strict=False))
    )


def test_the_confidence_that_is_shown_follows_from_the_readings():
    assert round(confidence(readings()), 2) == CONFIDENCE


def test_confidence_counts_a_relation_as_right_if_both_readers_say_so():
    some = [reading("right", "right"), reading("right", "wrong"), reading("right")]
    assert confidence(some) == (1 + 1) / (2 + 2)


def test_agreement_is_of_relations_with_two_verdicts():
    assert agreement([reading("wrong", "wrong"), reading("right", "wrong"), reading("right")]) == Share(1, 2)


def test_the_interval_of_a_share_is_wilsons():
    assert Share(55, 60).interval() == pytest.approx((0.8193, 0.9639), abs=1e-4)


def test_each_relation_is_recorded_once():
    judged = [(one.kind, one.set, one.document, one.statement) for one in readings()]
    assert len(judged) == len(set(judged))


def test_at_least_three_fifths_of_the_right_relations_of_workplace_documents_are_read():
    share = still_read([one for one in readings() if one.set == "workplace"], [DATASETS])
    assert share.cases >= 0.6 * share.of > 30
