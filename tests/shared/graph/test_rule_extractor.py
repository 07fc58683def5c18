"""Bounds, order and shape of extractions, and that no text breaks it."""

from itertools import pairwise
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from shared.graph.document_subject import title_subject
from shared.graph.mentions import Mention
from shared.graph.name_folding import fold
from shared.graph.rule_extractor import extract
from shared.graph.types import CONFIDENCE, MAX_NAME_CHARACTERS, MAX_NAMES, MAX_RELATIONS, Extraction, is_name
from tests.shared.graph.reading import read

KINDS = set("person organization team place service work identifier email name".split())  # noqa: SIM905
PIECES = [
    "Rosa Keane", "the Payments Team", "INC-4821", "owns", "depends on", "was the son of", "and", ",",
    ".", "\n", "# ",
    "Owner: ", "| a | b |", "|---|", "`", '"', "“", "”", "(", ")", "'s", "’s", "of", "3 May 2026",
    "《红楼梦》", "カーティス",
    "한국은행은", "مدينة", "a@b.example", "@acme/x", "He", "It", "not", "?", "\x00", "\ud800", "\ue000",
    "é", "e\u0301", "\u202e",
    "👩‍💻", "İ", "ß", "name:", "- x", "J.", "II", "I", "-", "/", "_", " ",
]  # fmt: skip
texts = some.lists(some.sampled_from(PIECES) | some.text(max_size=6), max_size=40).map(" ".join)


def subjects_of(extraction: Extraction) -> set[str]:
    bounded(extraction)
    return {name.name for name in extraction.names if name.weight == 1}


def bounded(extraction: Extraction) -> None:
    assert len(extraction.names) <= MAX_NAMES
    assert len(extraction.relations) <= MAX_RELATIONS


@settings(max_examples=150)
@given(
    some.sampled_from(["", "Notes", "Rosa Keane", "billing-service"]) | texts, some.lists(texts, max_size=3)
)
def test_any_text_can_be_processed_and_mentions_are_in_the_text(title: str, chunks: list[str]):
    read_ = extract(title, chunks)
    assert len(read_) == len(chunks)
    for text, extraction in zip(chunks, read_, strict=True):
        named = {fold(name.name) for name in extraction.names} | {fold(title)}
        shown = text.translate(dict.fromkeys([0xD800, 0xE000], "\ufffd"))
        for name in extraction.names:
            assert name.kind in KINDS
            assert 0 < name.weight <= 1
            assert is_name(name.name)
            assert name.surfaces
            assert all(one in shown for one in name.surfaces)
            assert name.name.encode()
        for relation in extraction.relations:
            assert fold(relation.subject) != fold(relation.object)
            assert {fold(relation.subject), fold(relation.object)} <= named | {fold(title.strip("\"'“”«»` "))}


@given(some.text(max_size=30))
def test_any_folded_name_is_its_own_fold(name: str):
    assert fold(fold(name)) == fold(name) or fold(name).split()[0] in {"the", "a", "an"}


# Each is repeated until the text is long enough.
ADVERSE = [
    "A", "Ab ", '"', "`", "(", "A.", "a/", "a@", "公司", "Ab owns Bc and ", "owner: ", "owner:\n", "\n",
    "| a ", "may 1 ", "Ab of ", "[", "From: a\n",
]  # fmt: skip


@pytest.mark.parametrize("size", [20_000, pytest.param(200_000, marks=pytest.mark.long)])
def test_an_adversarial_text_is_processed_to_its_end(size: int):
    for part in ADVERSE:
        text = part * (size // len(part))
        started = process_time()
        bounded(read(text, "Ab Bc"))
        # Time linear in the text is a tenth of that.
        assert process_time() - started < size / 20_000


def test_a_chunk_with_thousands_of_names_is_bounded():
    extraction = read(" and ".join(f"Name{number} depends on Other{number}." for number in range(2_000)))
    assert len(extraction.names) == MAX_NAMES
    bounded(extraction)


def test_the_length_of_a_name_is_bounded():
    assert not is_name("x" * (MAX_NAME_CHARACTERS + 1))
    assert is_name("x" * MAX_NAME_CHARACTERS)
    assert [is_name(name) for name in ("", "a", "é", "a1", "東芝", "東", "!?", "IT")] == [
        False, False, False, True, True, False, False, True,
    ]  # fmt: skip


SUBJECTS = {
    "From: Gareth Pugh <gareth@x.example>\nTo: Ann Lee <ann@x.example>\n\nHi": {"Gareth Pugh"},
    'Date: 3 May 2026\nFrom: "Pugh, Gareth" <gareth@x.example>\n\nHi': {"Pugh, Gareth"},
    "From: gareth@x.example\nTo: Ann Lee <ann@x.example>\n\nHi": set(),
    "Hi Ann,\n\nFrom: Gareth Pugh <gareth@x.example>\nTo: Ann Lee <ann@x.example>\n": set(),
}


def test_the_sender_of_a_mail_is_its_subject():
    assert {text: subjects_of(read(text, "note 17")) for text in SUBJECTS} == SUBJECTS


def test_the_address_behind_a_name_is_the_same_person():
    extraction = read(
        "From: Gareth Pugh <gareth@x.example>\nTo: ann@x.example; Rosa Keane <rosa@x.example>\n\nHi"
    )
    assert {name.name: name.surfaces for name in extraction.names} == {
        "Gareth Pugh": ("Gareth Pugh", "gareth@x.example"),
        "ann@x.example": ("ann@x.example",),
        "Rosa Keane": ("Rosa Keane", "rosa@x.example"),
    }


def test_titles_weigh_most_and_frequent_names_more_than_rare_ones():
    text = "Billing Service uses Kafka. We like Kafka. Kafka is near Redis. It began."
    weights = {name.name: name.weight for name in read(text, "Billing Service").names}
    order = ["Billing Service", "Kafka", "Redis"]
    assert all(weights[first] > weights[second] for first, second in pairwise(order))


def test_a_row_has_the_form_of_the_database():
    assert read("Michael Curtiz directed Casablanca.").row() == {
        "names": [
            {"name": "Michael Curtiz", "kind": "person", "surfaces": ["Michael Curtiz"], "weight": 0.6},
            {"name": "Casablanca", "kind": "work", "surfaces": ["Casablanca"], "weight": 0.6},
        ],
        "relations": [
            {
                "subject": "Casablanca",
                "type": "DIRECTED_BY",
                "object": "Michael Curtiz",
                "confidence": CONFIDENCE,
            }
        ],
    }


def test_no_chunks_have_no_names():
    assert extract("Billing Service", []) == []
    assert extract("", ["", " "]) == [Extraction(), Extraction()]


def test_a_quoted_name_keeps_its_inner_names():
    (extraction,) = extract(
        "Notes", ['They wrote the "Runbook for INC-4821" and "Me and Bobby McGee" that night.']
    )
    names = {name.name for name in extraction.names}
    assert {"Runbook for INC-4821", "Me and Bobby McGee"} <= names
    assert "\x00" not in str(extraction.row())


NEUTRAL = "Note 17"


def test_the_first_statement_names_the_subject_of_a_text_with_a_neutral_title():
    rows = [
        ("Harry & Son is a 1984 drama film.", {"Harry & Son"}),
        ("Interview with a Hitman was a film of 2012.", {"Interview with a Hitman"}),
        ("Stuart Peter Townsend (born 15 December 1972) is an actor.",
         {"Stuart Peter Townsend", "Stuart Townsend"}),
        ('Andrew Alan "Drew" Fuller (born 1980) is an actor.', {'Andrew Alan "Drew" Fuller', "Drew Fuller"}),
        ("Edmund Irvine Jr. (born 1965) was a driver.", {"Edmund Irvine Jr.", "Edmund Irvine"}),
        ("The Amsel Park Museum (1984) is a museum.", {"Amsel Park Museum"}),
        ("Choi Jin-ri, better known by her stage name Sulli, is an actress.", {"Choi Jin-ri", "Sulli"}),
        ('"Act of War: Direct Action" is a game.', {"Act of War: Direct Action"}),
        ("The Lisbon Depot (formerly called the Tagus Hall) was built in 1950.",
         {"Lisbon Depot", "Tagus Hall"}),
        ("March and April were cold.", set()),
        ("Mr Brown is a member of the Payments Team.", {"Brown"}),
        ("Perrin Vale received a new plate.", set()),
        ("Perrin Vale, the plate is here.", set()),
        ("It is a film about Lisbon.", set()),
        ("Banco de Chile Group (1893 - 1990) is a bank.", {"Banco de Chile Group"}),
        ("Ministry of Finance, founded 1949-1950, is a ministry.", {"Ministry of Finance"}),
        ("Yesterday Anna was a guest.", set()),
        ("If Anna (born 1990) is a guest, call.", set()),
        ("Our Kettle is the best.", set()),
        ("Most of what we sell is a service.", set()),
    ]  # fmt: skip
    assert [(text, subjects_of(read(text, NEUTRAL))) for text, _ in rows] == rows


MAIL = "From: ann@x.example\nSubject: {}\nTo: bob@x.example\n\nHi"
FIRST_LINES = [
    (MAIL.format("RE: Fwd: Frostline Cloud"), {"Frostline Cloud"}),
    (MAIL.format("see below, please"), set()),
    ("Subject: RE: AW: Kettle 3 is broken\nFrom: ann@x.example\n\nHello", set()),
    (MAIL.format("see below, please").replace("Hi", "Frostline Cloud is a service."), {"Frostline Cloud"}),
    ("# Frostline Cloud\n\nIt stores readings.", {"Frostline Cloud"}),
    ("# Overview\n\nThe Frostline Cloud is a service.", {"Frostline Cloud"}),
    ("# How to add a shelf\n\nAsk Rosa Keane.", set()),
    ("Ask Rosa Keane.\n\n# Frostline Cloud\n", set()),
    ("INC-4821\nReporter: Rosa Keane\n", {"INC-4821"}),
    ("[INC-4821] Rosa Keane wrote to us about INC-4822.", {"INC-4821"}),
    ("We saw INC-4821 again.", set()),
    ("Gareth Pugh: any news?\nRosa Keane: none\n", set()),
]


def test_the_first_lines_name_the_subject_of_a_text_with_a_neutral_title():
    assert [(text, subjects_of(read(text, NEUTRAL))) for text, _ in FIRST_LINES] == FIRST_LINES


def test_a_name_inside_a_subject_line_stays_a_name():
    names = {name.name for name in read(MAIL.format("Runbook for INC-4821"), NEUTRAL).names}
    assert {"Runbook for INC-4821", "INC-4821"} <= names


def test_a_later_chunk_has_no_subject_of_its_own():
    first, second = extract(NEUTRAL, ["Nothing yet.", "Harry & Son is a film."])
    assert all(name.weight < 1 for name in (*first.names, *second.names))


def test_a_title_in_lower_case_is_a_name_where_the_text_introduces_it():
    rows = [
        ("Paris, texas", "Paris, texas is a film."),
        ("one; two", "one; two is a song."),
        ("mr. robot", "Mr. Robot is a series."),
        ("sir gawain", "Sir gawain is a knight."),
        ("shining path", "The shining path (1970) is a group."),
        ("jest runner", '"Jest runner", a tool, owns the tests.'),
    ]
    for title, text in rows:
        assert title_subject(title, text) == Mention(0, len(title), title, "name")
        assert title_subject(title, "We met them there.") is None
