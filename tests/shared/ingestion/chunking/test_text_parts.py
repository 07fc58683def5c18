"""Undivided parts, and where chunks begin, by plan: spans exact, nothing lost, whatever the text."""

from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shared.ingestion.chunking.chunk_packer import CountTokens
from shared.ingestion.chunking.document_type import DOCUMENT_TYPES
from shared.ingestion.chunking.strategy import BY_SENTENCES, ChunkingPlan
from shared.ingestion.chunking.text_parts import split
from tests.shared.ingestion.chunking import test_chunk_packer
from tests.shared.ingestion.chunking.test_chunk_packer import (
    COUNTERS,
    chunk,
    keeps_every_property,
    letters,
    sizes,
    words,
)

MARKED = st.sampled_from(
    ["# Kilns", "## What is hot?", "Article 5", "Article 6. Duties", "Section 2 of the Act", "PART II",
     "1.2 The kiln is hot.", "§ 7 Ovens", "Abstract", "1 Introduction", "References",
     "[1] Ann, A. Kilns. 2020.", "Q: Is it hot?",
     "Q1. Is it? A: It is.", "A: It is. Very.", "**Why?**", "| a | b |", "|---|---|", "| 1. One. Two. | 2 |",
     "```", "~~~", "# in a fence?", "    deep in. And more.", "def f():", "  return {", "}", "// (", "", "",
     "The kiln is hot. It glows. Then it cools.", "Größe: 数据记录器 👩‍👧"]
)  # fmt: skip
TEXTS = st.lists(MARKED, max_size=25).map("\n".join) | test_chunk_packer.TEXTS
PLANS = st.builds(
    ChunkingPlan, st.sampled_from(["sentences", "recursive"]), st.sampled_from(sorted(DOCUMENT_TYPES))
)


def cut(text: str, plan: ChunkingPlan, size: int, overlap: int = 0, count: CountTokens = words) -> list[str]:
    return [item.text for item in chunk(text, size=size, overlap=overlap, count=count, plan=plan)]


@given(TEXTS, PLANS, sizes(), COUNTERS)
@example(". Then more. And more.\n# a. Then more. And more.", BY_SENTENCES, (17, 9), letters)
@settings(max_examples=200)
def test_every_plan_keeps_spans_sizes_order_overlap_and_all_visible_text(
    text: str, plan: ChunkingPlan, limits: tuple[int, int], count: CountTokens
):
    size, overlap = limits
    chunks = keeps_every_property(text, size=size, overlap=overlap, count=count, plan=plan)
    assert all(item.text.strip() == item.text for item in chunks)
    assert chunks == chunk(text, size=size, overlap=overlap, count=count, plan=plan)


@given(TEXTS, st.sampled_from(["python", "javascript", "html"]), sizes(), COUNTERS)
@settings(max_examples=15)
def test_code_keeps_them_too_although_it_may_be_invalid(
    text: str, language: str, limits: tuple[int, int], count: CountTokens
):
    plan = ChunkingPlan("code", language=language)
    keeps_every_property(text, size=limits[0], overlap=limits[1], count=count, plan=plan)


@given(TEXTS, PLANS)
def test_sections_are_in_order_and_disjoint_and_headings_below_those_of_markdown(
    text: str, plan: ChunkingPlan
):
    parts = split(text, plan)
    places = [place for part in parts.parts for place in (part.start, part.end)]
    assert places == sorted(places)
    assert parts.headings == sorted(parts.headings)
    assert all(level > 6 and title and start < end for start, end, level, title in parts.headings)


# -- recursive ----------------------------------------------------------------------------------------

RECURSIVE = ChunkingPlan("recursive")


PARAGRAPHS = "One two three. Four five.\n\nSix seven. Eight nine ten.\n\nEleven twelve."
LINES = ["One. Two three.", "Four five six. Seven.", "A b c d e f.", "G h i j k."]
RECURSIVE_CUTS: list[tuple[str, int, int, list[str]]] = [
    # Paragraphs that fit are kept whole, long ones are split at lines, then at sentences and at words.
    (PARAGRAPHS, 7, 0, ["One two three. Four five.", "Six seven. Eight nine ten.\n\nEleven twelve."]),
    ("\n".join([*LINES[:2], " ".join(LINES[2:])]), 6, 0, LINES),
    ("a b c d e f g h", 4, 0, ["a b c d", "e f g h"]),
    # The last sentences of a paragraph are repeated if they fit.
    ("One two three. Four five.\n\nSix seven. Eight nine.", 6, 2,
     ["One two three. Four five.", "Four five.\n\nSix seven. Eight nine."]),
    # A heading stays with its paragraph even if that is split.
    ("Before it all.\n\n# Two words\n\nOne two three. Four five six.", 6, 0,
     ["Before it all.", "# Two words\n\nOne two three.", "Four five six."]),
]  # fmt: skip


def test_a_recursive_plan_keeps_paragraphs_then_lines_then_sentences():
    assert [(text, size, overlap, cut(text, RECURSIVE, size, overlap))
            for text, size, overlap, _ in RECURSIVE_CUTS] == RECURSIVE_CUTS  # fmt: skip
    assert cut(PARAGRAPHS, BY_SENTENCES, 7)[0] == "One two three. Four five.\n\nSix seven."


# -- blocks of code and tables in Markdown ------------------------------------------------------------

FENCED = "Run it. Like this.\n\n```sh\n# no heading. Nor two.\nkiln --hot. Really\n```\n\nThen it is hot."


def test_a_code_block_is_kept_whole_if_it_fits_and_split_at_lines_otherwise(subtests: pytest.Subtests):
    block = FENCED[FENCED.index("```sh") : FENCED.rindex("```") + 3]
    for strategy in ("sentences", "recursive"):
        with subtests.test(strategy=strategy):
            assert cut(FENCED, ChunkingPlan(strategy), 11) == ["Run it. Like this.", block, "Then it is hot."]
            chunks = cut(FENCED, ChunkingPlan(strategy), 6)
            assert "```sh\n# no heading. Nor two." in chunks
            assert "kiln --hot. Really\n```" in chunks


def test_only_a_bare_fence_closes_a_code_block_and_an_unclosed_one_is_text():
    block = "```md\nA kiln. It is hot.\n```sh\nkiln --hot. Really. Yes.\n```"
    text = f"Before it.\n\n{block}\n\nAfter it."
    assert cut(text, BY_SENTENCES, 12) == ["Before it.", block, "After it."]
    assert cut("One two.\n```\nThree. Four.", BY_SENTENCES, 2)[-1] == "Four."


TABLE = "The ovens.\n\n| name | hot |\n| --- | --- |\n" + "\n".join(
    f"| kiln. No. {n} | very. |" for n in range(9)
)


@given(PLANS, st.integers(12, 40), st.integers(0, 11))
def test_no_table_row_is_split(plan: ChunkingPlan, size: int, overlap: int):
    rows = set(TABLE.splitlines())
    for text in cut(TABLE, plan, size, overlap):
        assert set(filter(None, text.splitlines())) <= rows


def test_a_row_longer_than_a_chunk_is_split_and_keeps_its_header():
    text = "| a |\n|---|\n| " + "word " * 20 + "|"
    chunks = chunk(text, size=8, overlap=0, count=words, plan=BY_SENTENCES)
    assert len(chunks) > 2
    assert {item.header for item in chunks[1:]} == {(0, 5)}


def test_chunks_that_start_within_a_table_have_its_header():
    first, *others = chunk(TABLE, size=24, overlap=0, count=words)
    assert first.header is None
    assert {TABLE[slice(*item.header)] for item in others if item.header} == {"| name | hot |"}
    # These only look like rows.
    lines = "\n".join(["| one two |"] * 9)
    assert {item.header for item in chunk(lines, size=8, overlap=0, count=words)} == {None}


def test_tables_have_no_overlap_and_each_starts_a_chunk():
    two = f"{TABLE}\n\n# Others\n\n{TABLE[12:]}"
    chunks = chunk(two, size=60, overlap=20, count=words, plan=ChunkingPlan(document_type="table"))
    assert all(one.end < following.start for one, following in pairwise(chunks))
    assert [item.text[:8] for item in chunks if item.header is None] == ["The oven", "| name |", "# Others"]


# -- types of documents -------------------------------------------------------------------------------

LAW = """# Kilns Act

PART I - GENERAL

Article 1
Scope
This Act applies to kilns. As said in
Section 9. It does.

Article 2 - Definitions
1. A kiln is an oven.
2. Section 4 of the Clay Act shall apply.

PART II
Article 5. The owner shall keep every kiln in a state that is safe for all who stand beside it, at all times.
"""
LEGAL = ChunkingPlan(document_type="legal")


def test_articles_start_chunks_and_are_headings_and_parts_stay_with_their_first_article():
    firsts = [text.split("\n")[0] for text in cut(LAW, LEGAL, 200, 20)]
    assert firsts == ["# Kilns Act", "Article 2 - Definitions", "PART II"]
    by_name = {title: level for _, _, level, title in split(LAW, LEGAL).headings}
    assert by_name == {"PART I - GENERAL": 7, "Article 1": 9, "Article 2 - Definitions": 9, "1": 12, "2": 12,
                     "PART II": 7, "Article 5": 9}  # fmt: skip


def test_a_reference_to_an_article_is_not_an_article():
    cases = (
        "Section 5 of the Act applies.", "Article 5(1) is void.", "Party A", "PARTY B", "Parts 1",
        "§ 433 Abs. 1 BGB", "12 March 2020", "3 kilns", "Articles 5 and 6", "Section",
    )  # fmt: skip
    assert [line for line in cases if split(f"It is so.\n\n{line}\n\nMore.", LEGAL).headings != []] == []


def test_the_first_of_section_and_article_is_the_higher_level():
    over = split("Section 1\n\nArticle 1\n\nIt is.", LEGAL).headings
    under = split("Article 1\n\nSection 1\n\nIt is.", LEGAL).headings
    assert [level for _, _, level, _ in over] == [level for _, _, level, _ in under] == [9, 10]


PAPER = """Of kilns
Ann Ash

Abstract
Kilns are hot. We measured it.

1 Introduction
Much is said of kilns.

2 Methods
2.1 Clay
We took clay, and then:
1. Fire
2. Water

References
[1] A. Ash. Clay. Journal of Clay, 2020. Kiln Press. Pages one to nine.
[2] B. Birch. Fire. Journal of Fire, 2021. Kiln Press.
   Second line of it.
"""
ACADEMIC = ChunkingPlan(document_type="academic")


def test_the_sections_of_a_paper_start_chunks_and_are_headings_and_lists_are_not():
    firsts = [text.split("\n")[0] for text in cut(PAPER, ACADEMIC, 60)]
    assert firsts == ["Of kilns", "Abstract", "1 Introduction", "2 Methods", "References"]
    results = [(level, title) for _, _, level, title in split(PAPER, ACADEMIC).headings]
    assert results == [
        (7, "Abstract"), (7, "1 Introduction"), (7, "2 Methods"), (8, "2.1 Clay"), (7, "References"),
    ]  # fmt: skip


FAQ = """# Kilns

Q: Is it hot? Really?
A: It is. Very hot, and for long. Do not touch it. Wait.

Q: And then? A: Then it cools.

3. Who may open it?
Ann alone.

**Why?**
Because.
"""
QA = ChunkingPlan(document_type="qa")


def test_each_question_starts_a_chunk_with_its_answer():
    assert cut(FAQ, QA, 60, 20) == [
        "# Kilns\n\nQ: Is it hot? Really?\nA: It is. Very hot, and for long. Do not touch it. Wait.",
        "Q: And then? A: Then it cools.",
        "3. Who may open it?\nAnn alone.",
        "**Why?**\nBecause.",
    ]


def test_the_continuation_of_a_long_answer_has_its_question():
    chunks = chunk(FAQ, size=15, overlap=0, count=words, plan=QA)
    assert FAQ[slice(*(chunks[1].header or (0, 0)))] == "Q: Is it hot? Really?"
    assert [item.header for item in chunks if item.text.startswith(("Q:", "3."))] == [None, None]


def test_a_general_document_has_no_markers():
    assert cut(LAW + FAQ, ChunkingPlan("sentences", "general"), 40, 5) == cut(LAW + FAQ, BY_SENTENCES, 40, 5)
    assert split(LAW + PAPER + FAQ, BY_SENTENCES).headings == []
