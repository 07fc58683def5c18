"""Identifiers and questions."""

from shared.retrieval.identifier_lookup import has_identifier
from shared.text.identifiers import identifier_in
from tests.shared.examples import match


def test_a_name_with_a_digit_or_a_separator_is_an_identifier():
    identifiers = (
        "INC-4821", "a/b", "joe@example.com", "v1.2.3", "0x80070005", "E-42", "snake_case", "shared/match.py",
        "std::vector", "covid-19", "4821", "ISO9001", "10.1038/s41586-020-2649-2", "é-9",
    )  # fmt: skip
    others = (
        "", "invoice", "well-being", "Why?", "What is INC-4821?", "two words", "e.g.", "-", "/",
        "a" * 300 + "1",
    )  # fmt: skip
    assert [identifier_in(text) for text in ("“INC-4821”?", " 4821. ")] == ["INC-4821", "4821"]
    assert [text for text in identifiers if identifier_in(text) != text] == []
    assert [text for text in others if identifier_in(text)] == []


def test_an_identifier_matches_text_and_title_in_any_case():
    assert has_identifier(match("The review of inc-4821."), "INC-4821")
    assert has_identifier(match("The review.", title="INC-4821"), "inc-4821")
    assert not has_identifier(match("The review of INC 4821."), "INC-4821")


def test_a_part_of_a_longer_identifier_does_not_match():
    for identifier, text in (("INC-482", "inc-4821"), ("v1.2", "v1.25"), ("C-4", "INC-4")):
        assert not has_identifier(match(f"The review of {text} is done."), identifier)
        assert has_identifier(match(f"The review of ({identifier.lower()}), at last."), identifier)
