"""Passages: exact spans, bounded sizes, nothing lost, whatever the text."""

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from local.seed_demo import demo_files
from shared.ingestion.chunking.chunk_packer import Chunk, CountTokens, pack
from shared.ingestion.chunking.strategy import BY_SENTENCES, ChunkingPlan
from shared.ingestion.chunking.text_parts import split
from shared.models.embeddings import Embedder
from shared.text.sentences import sentences
from shared.text.token_count import count_tokens


def chunk(
    text: str,
    *,
    size: int,
    overlap: int,
    count: CountTokens,
    lang: str | None = None,
    plan: ChunkingPlan = BY_SENTENCES,
) -> list[Chunk]:
    return pack(text, split(text, plan, lang), size, overlap, count)


def words(text: str) -> int:
    return len(text.split())


def letters(text: str) -> int:
    """Characters that show: the cheap counter for which a long word is long."""
    return sum(not character.isspace() for character in text)


WORDS = st.sampled_from(
    ["a", "of", "milk", "truck", "logger", "27", "4.2", "°C", "e.g.", "Mr.", "Kühlkette", "数据记录器",
     "データ", "डेटा", "لبن", "👩\u200d👩\u200d👧", "e\u0301", "--", "|", "#", "?!", "...", "x\u00a0y"]
)  # fmt: skip
LINES = st.builds(
    lambda mark, line, end: mark + " ".join(line) + end,
    st.sampled_from(["", "", "", "# ", "### ", "| ", "- ", "Anna: ", "  "]),
    st.lists(WORDS, max_size=12),
    st.sampled_from([".", "?", "", " ", "。", ". Then more. And more."]),
)
# Lines like those of documents, and whatever else there is.
TEXTS = st.lists(LINES, max_size=12).map("\n".join) | st.text(max_size=200)
COUNTERS = st.sampled_from([words, letters])


@st.composite
def sizes(draw: st.DrawFn) -> tuple[int, int]:
    size = draw(st.integers(4, 40))
    return size, draw(st.integers(0, size - 1))


def uncovered(text: str, chunks: list[Chunk]) -> list[str]:
    """The characters that show and stand in no chunk."""
    ids = {place for item in chunks for place in range(item.start, item.end)}
    return [text[place] for place in range(len(text)) if place not in ids and not text[place].isspace()]


@given(TEXTS, sizes(), COUNTERS)
@example(". Then more. And more.\n# a. Then more. And more.", (17, 9), letters)
def test_chunks_keep_spans_sizes_order_overlap_and_all_visible_text(
    text: str, limits: tuple[int, int], count: CountTokens
):
    size, overlap = limits
    chunks = chunk(text, size=size, overlap=overlap, count=count)
    for item in chunks:
        assert text[item.start : item.end] == item.text
        assert item.text.strip() == item.text != ""
        assert item.tokens == count(item.text) <= size
    for one, following in pairwise(chunks):
        assert one.start < following.start
        assert one.end < following.end
        assert count(text[following.start : one.end]) <= overlap
    assert uncovered(text, chunks) == []
    assert chunks == chunk(text, size=size, overlap=overlap, count=count)


@example("...\u3002", (5, 0))
@given(TEXTS, sizes())
def test_no_chunk_exceeds_the_size_in_tokens_that_count_line_ends(text: str, limits: tuple[int, int]):
    """Hosted models' tokens include the line ends, which stand between sentences and belong to none."""
    size, overlap = limits
    for item in chunk(text, size=size, overlap=overlap, count=count_tokens):
        # One character of a rare script may cost more than a tiny size, and cannot be halved.
        assert item.tokens <= size or len(item.text) == 1


def headings(text: str) -> set[tuple[int, int]]:
    return {(item.start, item.end) for item in sentences(text) if item.heading}


SECTIONS = st.builds(
    lambda titles, length: "## of four whole words\n" * titles + " ".join(["milk"] * length) + ".\n",
    st.integers(0, 2),
    st.integers(1, 9),
)


@given(st.lists(SECTIONS, max_size=12).map("".join), st.integers(0, 8))
def test_a_heading_is_not_the_end_of_a_chunk(text: str, overlap: int):
    """Two headings (10 words) and the sentence after them (9) fit a chunk, so they need never part."""
    for item in chunk(text, size=20, overlap=overlap, count=words):
        assert not any(item.start <= start and item.end == end for start, end in headings(text)), item.text


def test_a_heading_starts_a_chunk_when_the_current_one_is_long_enough():
    text = "# One\nA first sentence of six words.\n# Two\nA second sentence of six words.\n"
    assert [item.text for item in chunk(text, size=20, overlap=0, count=words)] == [
        "# One\nA first sentence of six words.",
        "# Two\nA second sentence of six words.",
    ]


def test_a_heading_does_not_cut_off_a_short_beginning_or_a_title():
    for text, size in (
        ("Intro.\n# One\nA first sentence of six words.", 40),
        ("# The field guide to loggers\n## Batteries\nA battery lasts five years.", 16),
    ):
        (only,) = chunk(text, size=size, overlap=2, count=words)
        assert only.text == text


def test_the_overlap_consists_of_whole_sentences():
    text = "One two three four. Five six. Seven eight. Nine ten eleven twelve."
    chunks = chunk(text, size=8, overlap=3, count=words)
    assert [item.text for item in chunks] == [
        "One two three four. Five six. Seven eight.",
        "Seven eight. Nine ten eleven twelve.",
    ]


def test_abbreviations_of_the_language_do_not_end_a_chunk(subtests: pytest.Subtests):
    cases = (
        ("de", "Er glüht. Er ist bzw. war heiß.", ["Er glüht.", "Er ist bzw. war heiß."]),
        ("fr", "Il est chaud. Voir chap. 3 du livre.", ["Il est chaud.", "Voir chap. 3 du livre."]),
    )
    for lang, text, expected in cases:
        with subtests.test(lang=lang):
            chunks = chunk(text, size=6, overlap=0, count=words, lang=lang)
            assert [item.text for item in chunks] == expected


def test_a_transcript_is_split_between_turns():
    turns = [f"Anna: Logger {number} stopped. Is that right?\nBen: Yes, it is." for number in range(8)]
    chunks = chunk("\n".join(turns), size=20, overlap=0, count=words)
    assert len(chunks) > 1
    assert all(item.text.startswith(("Anna:", "Ben:", "Is that right?")) for item in chunks)
    assert all(item.text.endswith((".", "?")) for item in chunks)


def test_a_sentence_longer_than_a_chunk_is_split_at_white_space():
    text = " ".join(f"word{number}" for number in range(100))
    chunks = chunk(text, size=16, overlap=4, count=words)
    assert all(8 <= item.tokens <= 16 for item in chunks)
    assert {word for item in chunks for word in item.text.split()} == set(text.split())


def test_a_text_that_fits_is_one_trimmed_chunk_and_an_empty_one_none():
    assert chunk("\n  Only this.  \n", size=16, overlap=4, count=words) == [Chunk("Only this.", 3, 13, 2)]
    for empty in ("", " ", "\n\n\t \n"):
        assert chunk(empty, size=16, overlap=4, count=words) == []


def test_invalid_sizes_are_refused(subtests: pytest.Subtests):
    for size, overlap in ((0, 0), (-1, -2), (10, 10), (10, 11), (10, -1)):
        refused = pytest.raises(ValueError, match="overlap must be at least 0 and below size")
        with subtests.test(size=size, overlap=overlap), refused:
            chunk("A text.", size=size, overlap=overlap, count=words)


def test_the_demo_corpus_has_every_property_with_the_local_model_s_tokens(
    subtests: pytest.Subtests, embedder: Embedder
):
    for file, _ in demo_files():
        document = file.document
        with subtests.test(document.external_id):
            chunks = chunk(
                document.text, size=128, overlap=12, count=embedder.count_tokens, lang=document.lang
            )
            assert uncovered(document.text, chunks) == []
            assert all(item.text == document.text[item.start : item.end] for item in chunks)
            assert all(item.tokens == embedder.count_tokens(item.text) <= 128 for item in chunks)
            for one, following in pairwise(chunks):
                assert embedder.count_tokens(document.text[following.start : one.end]) <= 12
                assert not any(end == one.end for _, end in headings(document.text))
