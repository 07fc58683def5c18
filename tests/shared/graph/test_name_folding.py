"""Spellings of one name."""

from shared.graph.name_folding import fold

FOLDED = [
    ("Michael Curtiz", "michael curtiz"), ("The Beatles", "beatles"), ("the", "the"),
    ("A Quiet Place", "quiet place"), ("Runmarö", "runmaro"), ("billing_team", "billing team"),
    ("O’Neill", "o neill"), ("Theodred II (Bishop of Elmham)", "theodred ii"), ("(1984)", "1984"),
    ("STRASSE", "strasse"), ("ガラス", "ガラス"), ("दिल्ली", "दिल्ली"), ("", ""), ("...", ""),
]  # fmt: skip


def test_a_name_is_folded():
    assert [(name, fold(name)) for name, _ in FOLDED] == FOLDED
