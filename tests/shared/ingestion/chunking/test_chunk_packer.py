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


def keeps_every_property(
    text: str,
    *,
    size: int,
    overlap: int,
    count: CountTokens,
    plan: ChunkingPlan = BY_SENTENCES,
    lang: str | None = None,
) -> list[Chunk]:
    """The chunks: their spans, sizes, order and overlap are right, and no visible text is lost."""
    chunks = chunk(text, size=size, overlap=overlap, count=count, plan=plan, lang=lang)
    for item in chunks:
        assert text[item.start : item.end] == item.text != ""
        assert item.tokens == count(item.text) <= size
        assert item.header is None or 0 <= item.header[0] < item.header[1] <= item.start
    for one, following in pairwise(chunks):
        assert one.start < following.start
        assert one.end < following.end
        assert count(text[following.start : one.end]) <= overlap
    assert uncovered(text, chunks) == []
    return chunks


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


TITLED = "# The field guide to loggers\n## Batteries\nA battery lasts five years."
CUTS: list[tuple[str, int, int, str | None, list[str]]] = [
    # A heading starts a chunk when the current one is long enough, and cuts off no short beginning or title.
    ("# One\nA first sentence of six words.\n# Two\nA second sentence of six words.\n", 20, 0, None,
     ["# One\nA first sentence of six words.", "# Two\nA second sentence of six words."]),
    ("Intro.\n# One\nA first sentence of six words.", 40, 2, None,
     ["Intro.\n# One\nA first sentence of six words."]),
    (TITLED, 16, 2, None, [TITLED]),
    # The overlap consists of whole sentences.
    ("One two three four. Five six. Seven eight. Nine ten eleven twelve.", 8, 3, None,
     ["One two three four. Five six. Seven eight.", "Seven eight. Nine ten eleven twelve."]),
    # Abbreviations of the language do not end a chunk.
    ("Er glüht. Er ist bzw. war heiß.", 6, 0, "de", ["Er glüht.", "Er ist bzw. war heiß."]),
    ("Il est chaud. Voir chap. 3 du livre.", 6, 0, "fr", ["Il est chaud.", "Voir chap. 3 du livre."]),
    # A text that fits is one trimmed chunk, an empty one none.
    ("\n  Only this.  \n", 16, 4, None, ["Only this."]),
    ("\n\n\t \n", 16, 4, None, []),
]  # fmt: skip


def test_a_text_is_cut_between_sentences_at_headings(subtests: pytest.Subtests):
    for text, size, overlap, lang, expected in CUTS:
        with subtests.test(text=text):
            chunks = keeps_every_property(text, size=size, overlap=overlap, count=words, lang=lang)
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


def test_invalid_sizes_are_refused(subtests: pytest.Subtests):
    for size, overlap in ((0, 0), (-1, -2), (10, 10), (10, 11), (10, -1)):
        refused = pytest.raises(ValueError, match="overlap must be at least 0 and below size")
        with subtests.test(size=size, overlap=overlap), refused:
            chunk("A text.", size=size, overlap=overlap, count=words)


def test_the_demo_corpus_has_every_property_with_the_local_model_s_tokens(
    subtests: pytest.Subtests, embedder: Embedder
):
    for file, _ in demo_files():
        text, lang, count = file.document.text, file.document.lang, embedder.count_tokens
        with subtests.test(file.document.external_id):
            *chunks, _ = keeps_every_property(text, size=128, overlap=12, count=count, lang=lang)
            ends = {end for _, end in headings(text)}
            assert not any(item.end in ends for item in chunks)
