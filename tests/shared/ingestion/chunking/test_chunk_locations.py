"""Pages and sections of passages, by literals."""

import pytest

from shared.ingestion.chunking.chunk_locations import MAX_SECTION, Outline

TEXT = """# Kilns

Before the parts.

## Firing
It is hot.
```
# not a heading
```
Still firing.

### Cooling ###
It is cold.

# Costs
Clay."""
PAGES = ((0, 1), (TEXT.index("## Firing"), 2), (TEXT.index("# Costs"), 4))


def location_of(passage: str) -> dict[str, object]:
    start = TEXT.index(passage)
    return Outline(TEXT, PAGES).location(start, start + len(passage))


def test_a_passage_has_the_headings_before_it():
    cases: list[tuple[str, str]] = [
        ("Before the parts.", "Kilns"), ("# Kilns\n\nBefore", "Kilns"), ("It is hot.", "Kilns > Firing"),
        ("## Firing\nIt is", "Kilns > Firing"), ("Still firing.", "Kilns > Firing"),
        ("# not a heading", "Kilns > Firing"), ("It is cold.", "Kilns > Firing > Cooling"),
        ("Still firing.\n\n### Cooling ###\nIt is cold.", "Kilns > Firing"), ("Clay.", "Costs"),
    ]  # fmt: skip
    assert [(passage, location_of(passage)["section"]) for passage, _ in cases] == cases


def test_a_passage_has_the_page_of_its_start(subtests: pytest.Subtests):
    cases: list[tuple[str, dict[str, int]]] = [
        ("Before the parts.", {"page_number": 1}),
        ("parts.\n\n## Firing", {"page_number": 1, "page_end": 2}),
        ("It is cold.\n\n", {"page_number": 2}),
        ("It is cold.\n\n#", {"page_number": 2, "page_end": 4}),
        ("Clay.", {"page_number": 4}),
    ]
    for passage, pages in cases:
        with subtests.test(passage=passage):
            location = location_of(passage)
            assert {name: value for name, value in location.items() if name != "section"} == pages


def test_a_passage_without_headings_and_pages_has_no_location():
    assert Outline("Just a line.").location(0, 4) == {}
    assert Outline("Just a line.\n# Then").location(0, 4) == {}
    assert Outline("late", ((2, 1),)).location(0, 2) == {}


def test_a_section_has_all_its_headings_whole_and_is_bounded():
    text = "# One\n\n## Two\n\nText"
    assert Outline(text).location(0, len(text)) == {"section": "One > Two"}
    # A title may contain the separator.
    text = "# Menu\n\n## File > Save > As\n\nText"
    titles = Outline(text).location(0, len(text))["section"].split(" > ")
    assert [title.replace("\u00a0", " ") for title in titles] == ["Menu", "File > Save > As"]
    location = Outline(f"# {'long ' * 200}\ntext").location(1003, 1007)
    assert len(location["section"]) == MAX_SECTION


def test_other_headings_are_below_markdown_headings():
    text = "# Act\nPart I\nArticle 1\nIt is.\n5.1 It shall be. And\n# Annex\nList"
    messages = [
        (text.index(title), text.index(title) + length, level, title)
        for title, length, level in (("Part I", 6, 7), ("Article 1", 9, 9), ("5.1", 1, 13))
    ]
    outline = Outline(text, headings=messages)
    for passage, section in {
        "Part I\nArticle": "Act > Part I > Article 1",
        "It is.": "Act > Part I > Article 1",
        "5.1 It": "Act > Part I > Article 1 > 5.1",
        "And": "Act > Part I > Article 1 > 5.1",
        "List": "Annex",
    }.items():
        start = text.index(passage)
        assert outline.location(start, start + len(passage)) == {"section": section}
