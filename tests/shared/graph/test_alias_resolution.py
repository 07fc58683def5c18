"""Short forms of names within a document, and other names that it tells."""

import pytest

from shared.graph.extractor import extract
from tests.shared.graph.reading import names, read, said


def test_a_surname_stands_for_the_whole_name_and_is_kept_as_said():
    (name,) = read("They met Michael Curtiz. They liked Curtiz.").names
    assert (name.name, name.surfaces) == ("Michael Curtiz", ("Michael Curtiz", "Curtiz"))


def test_so_does_a_first_name_in_a_later_chunk():
    first, second = extract("Notes", ["We met Rosa Keane.", "We like Rosa."])
    assert [name.name for name in second.names] == ["Rosa Keane"]
    assert second.names[0].surfaces == ("Rosa",)
    assert first.names[0].surfaces == ("Rosa Keane",)


def test_what_two_names_share_stands_for_neither():
    assert names("We met Rosa Keane and Rosa Walsh. We like Rosa.") == ["Rosa Keane", "Rosa Walsh", "Rosa"]


def test_a_short_form_comes_after_its_name():
    assert names("We saw Paris. We met Paris Hilton.") == ["Paris", "Paris Hilton"]


def test_one_name_is_spelled_as_it_was_first():
    assert names("We asked the Billing Team. Then the Billing team left.") == ["Billing Team"]


def test_the_title_is_the_whole_name_where_it_is_among_others():
    text = "Lothair II was a king. The son of Emperor Lothair I was near Lothair."
    assert names(text, "Lothair II") == ["Lothair II", "Emperor Lothair I"]


def test_what_a_text_opens_with_in_full_is_its_title():
    (name,) = read("Isaac Iosifovich Schwartz (13 May 1923) was a composer.", "Isaac Schwartz").names[:1]
    assert (name.name, name.surfaces) == ("Isaac Schwartz", ("Isaac Iosifovich Schwartz",))


ALIASES = [
    (
        "We bought from International Business Machines (IBM).",
        ["IBM ALIAS_OF International Business Machines"],
    ),
    ("They asked Meta (formerly Facebook) about it.", ["Facebook ALIAS_OF Meta"]),
    ("They met Isaac Schwartz, also known as Isaak Shvarts.", ["Isaak Shvarts ALIAS_OF Isaac Schwartz"]),
    ("It stood in Frunze (now Bishkek).", ["Bishkek ALIAS_OF Frunze"]),
    ("They went to Kilmallock (Limerick).", []),
    ("It was in Mexico (National Institute).", []),
    ("He came on 3 May 2026 (Sunday).", []),
]


def test_a_text_tells_another_name(subtests: pytest.Subtests):
    for text, expected in ALIASES:
        with subtests.test(text=text):
            assert [one for one in said(text) if "ALIAS_OF" in one] == expected
