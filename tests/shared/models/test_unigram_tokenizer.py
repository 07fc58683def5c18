"""The unigram tokenizer, with a vocabulary of a few pieces."""

from shared.models.multilingual_e5_weights import Vocabulary
from shared.models.unigram_tokenizer import CACHED_LENGTH, UnigramTokenizer

SCORES = {
    "<unk>": 0.0,
    "\u2581": -3.0,
    "\u2581la": -4.0,
    "mp": -4.0,
    "\u2581lamp": -7.0,
    "s": -5.0,
    "\u2581ö": -6.0,
}
IDS = {piece: index for index, piece in enumerate(SCORES)}
TOKENIZER = UnigramTokenizer(Vocabulary(IDS, list(SCORES.values()), 0, {ord("\x01"): "", ord("\t"): " "}))


def pieces(text: str) -> list[str]:
    names = list(IDS)
    return [names[token] for token in TOKENIZER.tokens(text)]


def test_the_pieces_have_the_largest_sum_of_scores() -> None:
    assert pieces("lamps") == ["\u2581lamp", "s"]
    assert pieces("las lamp") == ["\u2581la", "s", "\u2581lamp"]


def test_characters_without_a_piece_are_unknown_one_by_one() -> None:
    assert pieces("lampxy") == ["\u2581lamp", "<unk>", "<unk>"]
    assert pieces("x") == ["\u2581", "<unk>"]


def test_replaced_characters_and_spaces_do_not_count() -> None:
    assert pieces(" la\x01mp\t \n lamp ") == ["\u2581lamp", "\u2581lamp"]
    assert pieces("") == pieces(" \t\n") == []


def test_a_letter_and_its_accent_are_the_same_as_one_character() -> None:
    assert pieces("o\u0308") == pieces("ö") == ["\u2581ö"]


def test_a_word_too_long_for_the_cache_has_the_same_pieces() -> None:
    assert pieces("s" * (CACHED_LENGTH + 1)) == ["\u2581", *["s"] * (CACHED_LENGTH + 1)]
