"""Short forms of names within a document, and other names that it tells."""

import pytest

from shared.graph.rule_extractor import extract
from tests.shared.graph.reading import names, read, relation_texts


def test_a_surname_is_an_alias_of_the_full_name_and_keeps_its_spelling():
    (name,) = read("They met Michael Curtiz. They liked Curtiz.").names
    assert (name.name, name.surfaces) == ("Michael Curtiz", ("Michael Curtiz", "Curtiz"))


def test_a_first_name_in_a_later_chunk_is_an_alias_too():
    first, second = extract("Notes", ["We met Rosa Keane.", "We like Rosa."])
    assert [name.name for name in second.names] == ["Rosa Keane"]
    assert second.names[0].surfaces == ("Rosa",)
    assert first.names[0].surfaces == ("Rosa Keane",)


def test_an_ambiguous_short_form_is_an_alias_of_neither_name():
    assert names("We met Rosa Keane and Rosa Walsh. We like Rosa.") == ["Rosa Keane", "Rosa Walsh", "Rosa"]


def test_a_short_form_must_follow_its_full_name():
    assert names("We saw Paris. We met Paris Hilton.") == ["Paris", "Paris Hilton"]


def test_a_name_keeps_its_first_spelling():
    assert names("We asked the Billing Team. Then the Billing team left.") == ["Billing Team"]


def test_the_title_is_the_full_name_among_several():
    text = "Lothair II was a king. The son of Emperor Lothair I was near Lothair."
    assert names(text, "Lothair II") == ["Lothair II", "Emperor Lothair I"]


def test_a_name_at_the_start_of_the_text_is_its_title():
    (name,) = read("Isaac Iosifovich Schwartz (13 May 1923) was a composer.", "Isaac Schwartz").names[:1]
    assert (name.name, name.surfaces) == ("Isaac Schwartz", ("Isaac Iosifovich Schwartz",))


ALIASES = [
    (
        "We bought from International Business Machines (IBM).",
        ["IBM ALIAS_OF International Business Machines"],
    ),
    ("They asked Meta (formerly Facebook) about it.", ["Facebook ALIAS_OF Meta"]),
    ("Usage Meters (aka Customer Meters) are new.", ["Customer Meters ALIAS_OF Usage Meters"]),
    ("Henry was count of Nassau, also known as Adolphus.", []),
    ("They met Fiona Nash (née Morton).", []),
    ("They met Isaac Schwartz, also known as Isaak Shvarts.", ["Isaak Shvarts ALIAS_OF Isaac Schwartz"]),
    ("It stood in Frunze (now Bishkek).", ["Bishkek ALIAS_OF Frunze"]),
    ("They went to Kilmallock (Limerick).", []),
    ("It was in Mexico (National Institute).", []),
    ("He came on 3 May 2026 (Sunday).", []),
]


def test_a_text_states_an_alias(subtests: pytest.Subtests):
    for text, expected in ALIASES:
        with subtests.test(text=text):
            assert [one for one in relation_texts(text) if "ALIAS_OF" in one] == expected
