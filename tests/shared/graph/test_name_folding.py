"""Spellings of one name, and whether a text names it."""

import pytest

from shared.graph.name_folding import fold, folded_text, found_in

FOLDED = [
    ("Michael Curtiz", "michael curtiz"), ("The Beatles", "beatles"), ("the", "the"),
    ("A Quiet Place", "quiet place"),
    ("Runmarö", "runmaro"), ("Équipe Paiements", "equipe paiements"), ("billing_team", "billing team"),
    ("billing-service", "billing service"), ("O’Neill", "o neill"),
    ("Theodred II (Bishop of Elmham)", "theodred ii"),
    ("(1984)", "1984"), ("STRASSE", "strasse"), ("Straße", "strasse"), ("ガラス", "ガラス"),
    ("दिल्ली", "दिल्ली"),
    ("한국은행", "한국은행"), ("株式会社東芝", "株式会社東芝"), ("", ""), ("...", ""),
    ("  Two\n words ", "two words"),
]  # fmt: skip


def test_a_name_is_folded(subtests: pytest.Subtests):
    for name, folded in FOLDED:
        with subtests.test(name=name):
            assert fold(name) == folded


TEXTS_WITH_NAME = [
    ("Michael Curtiz", "a film by MICHAEL  CURTIZ."),
    ("The Beatles", "he heard the Beatles"),
    ("Runmarö", "an island, Runmaro, near it"),
    ("billing_team", "ask the Billing Team"),
    ("東芝", "株式会社東芝は"),
    ("한국은행", "한국은행은 서울에"),
    ("a@b.example", "mail a@b.example now"),
    ("Cairo (Egypt)", "in Cairo"),
]


def test_a_text_contains_a_name(subtests: pytest.Subtests):
    for name, text in TEXTS_WITH_NAME:
        with subtests.test(name=name):
            assert found_in(name, folded_text(text))


TEXTS_WITHOUT_NAME = [
    ("art", "start"),
    ("Curtiz", "Curtizan"),
    ("", "anything"),
    ("!?", "what!?"),
    ("Rosa Keane", "Rosa and Keane"),
]


def test_a_text_does_not_contain_a_name(subtests: pytest.Subtests):
    for name, text in TEXTS_WITHOUT_NAME:
        with subtests.test(name=name):
            assert not found_in(name, folded_text(text))
