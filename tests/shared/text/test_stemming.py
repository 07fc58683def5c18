"""Stems: the same for the forms of a word, without those of another."""

import pytest

from shared.text.stemming import content_words


@pytest.mark.parametrize(
    ("one", "other"), [("van", "vans"), ("boat", "boats"), ("child", "children"), ("table", "tables")]
)
def test_a_word_and_its_plural_have_one_stem(one: str, other: str):
    assert content_words(one) == content_words(other)


@pytest.mark.parametrize(
    ("one", "other"), [("bus", "bu"), ("glas", "glass"), ("cross", "cros"), ("a4s", "a4")]
)
def test_another_word_with_a_final_s_has_another_stem(one: str, other: str):
    assert content_words(one) != content_words(other)
