"""Short forms of names within a document, and other names that it tells."""

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


def test_a_name_at_the_start_of_the_text_is_its_title():
    (name,) = read("Isaac Iosifovich Schwartz (13 May 1923) was a composer.", "Isaac Schwartz").names[:1]
    assert (name.name, name.surfaces) == ("Isaac Schwartz", ("Isaac Iosifovich Schwartz",))


NAMES = [
    # An ambiguous short form is an alias of neither name, and a short form must follow its full name.
    ("We met Rosa Keane and Rosa Walsh. We like Rosa.", "", ["Rosa Keane", "Rosa Walsh", "Rosa"]),
    ("We saw Paris. We met Paris Hilton.", "", ["Paris", "Paris Hilton"]),
    # The first spelling is kept, and the title is the full name among several.
    ("We asked the Billing Team. Then the Billing team left.", "", ["Billing Team"]),
    ("Lothair II was a king. The son of Emperor Lothair I was near Lothair.", "Lothair II",
     ["Lothair II", "Emperor Lothair I"]),
]  # fmt: skip


def test_short_forms_are_resolved_only_if_they_are_certain():
    assert [(text, title, names(text, title) if title else names(text)) for text, title, _ in NAMES] == NAMES


ALIASES = [
    ("We bought from General Business Machines (GBM).", ["GBM ALIAS_OF General Business Machines"]),
    ("They asked Meta (formerly Facebook) about it.", ["Facebook ALIAS_OF Meta"]),
    ("Usage Meters (aka Customer Meters) are new.", ["Customer Meters ALIAS_OF Usage Meters"]),
    ("Henry was count of Nassau, also known as Adolphus.", []),
    ("They met Isaac Schwartz, also known as Isaak Shvarts.", ["Isaak Shvarts ALIAS_OF Isaac Schwartz"]),
    ("It stood in Frunze (now Bishkek).", ["Bishkek ALIAS_OF Frunze"]),
    ("They went to Kilmallock (Limerick).", []),
    ("He came on 3 May 2026 (Sunday).", []),
]


def test_a_text_states_an_alias():
    for text, expected in ALIASES:
        assert [one for one in relation_texts(text) if "ALIAS_OF" in one] == expected, text
