"""What is asked for by its name and what is a question."""

import pytest

from shared.match import holds, is_identifier
from tests.shared.examples import match


@pytest.mark.parametrize(
    "text",
    ["INC-4821", "a/b", "joe@example.com", "v1.2.3", "0x80070005", "E-42", "snake_case", "shared/match.py",
     "std::vector", "covid-19", "#4821"[1:], "ISO9001", "10.1038/s41586-020-2649-2", "é-9"],
)  # fmt: skip
def test_a_name_with_a_digit_or_a_joint_is_an_identifier(text: str):
    assert is_identifier(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "invoice",
        "well-being",
        "Why?",
        "What is INC-4821?",
        "two words",
        "e.g.",
        "-",
        "/",
        "a" * 300 + "1",
    ],
)
def test_a_word_or_a_question_is_none(text: str):
    assert not is_identifier(text)


def test_an_identifier_is_held_by_text_or_title_in_any_case():
    assert holds(match("The review of inc-4821."), "INC-4821")
    assert holds(match("The review.", title="INC-4821"), "inc-4821")
    assert not holds(match("The review of INC 4821."), "INC-4821")


@pytest.mark.parametrize(
    ("identifier", "text"), [("INC-482", "inc-4821"), ("v1.2", "v1.25"), ("C-4", "INC-4")][:]
)
def test_a_part_of_a_longer_identifier_is_another(identifier: str, text: str):
    assert not holds(match(f"The review of {text} is done."), identifier)
    assert holds(match(f"The review of ({identifier.lower()}), at last."), identifier)
