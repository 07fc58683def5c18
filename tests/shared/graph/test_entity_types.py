"""The type of a name, by its own words and by its context."""

from shared.graph.entity_types import kind_of
from tests.shared.graph.reading import kinds

KINDS = [
    ("Halden Instruments", "organization"), ("University of Oslo", "organization"), ("Payments Team", "team"),
    ("Billing Service", "service"), ("Ledger API", "service"), ("Vasilyevsky Island", "place"),
    ("King Michael", "person"), ("Lothair II", "person"), ("World War II", "name"),
    ("John F. Kennedy", "person"), ("Rosa Keane", "name"), ("Ministry of Health", "organization"),
    ("Saint Petersburg", "place"),
]  # fmt: skip


def test_a_name_has_a_type():
    assert [(name, kind_of(name)) for name, _ in KINDS] == KINDS


def test_a_description_sets_the_type_of_a_name():
    result = kinds("Casablanca is a film directed by Michael Curtiz. We met Dr. Brown.")
    assert result == {"Casablanca": "work", "Michael Curtiz": "person", "Brown": "person"}
