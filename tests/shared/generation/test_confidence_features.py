"""ConfidenceFeatures of literal matches: coverage, and what the question mentions and no match does."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from shared.generation.confidence_features import ConfidenceFeatures, features_of
from tests.shared.examples import match

MANUAL = match(
    "The FL-300 weighs 118 g with its battery. It does not measure wind. Ask Coldtrace in Utrecht.",
    similarity=0.6,
)


def missing(question: str) -> tuple[str, ...]:
    return features_of(question, [MANUAL]).missing


def test_the_similarity_is_the_best_and_an_absent_one_counts_as_zero():
    assert features_of("colour", [MANUAL, match(similarity=0.7)]).similarity == 0.7
    assert features_of("colour", [replace(MANUAL, similarity=None)]).similarity == 0.0
    assert features_of("How heavy is it?", []) == ConfidenceFeatures(0.0, 0.0)


def test_coverage_is_of_one_sentence_and_not_of_several():
    one = match("The kettle switches off at 100 degrees.", similarity=0.5)
    two = match("The kettle has a lid. The heater switches off. Water boils at 100 degrees.", similarity=0.5)
    question = "At how many degrees does the kettle switch off?"
    assert features_of(question, [one]).coverage == pytest.approx(1.0)
    assert features_of(question, [two]).coverage < 0.6


def test_similarity_and_coverage_are_of_one_match():
    near = match("Kettles of all kinds are in the kitchen.", similarity=0.6)
    words = match("The heater switches off at 100 degrees.", similarity=0.5)
    question = "At how many degrees does the kettle switch off?"
    apart = features_of(question, [near, words])
    assert apart.similarity == 0.5
    assert 0.5 < apart.coverage < 1.0
    # Words in a passage off the subject count little.
    assert features_of(question, [near, replace(words, similarity=0.1)]).similarity == 0.6


def test_passages_of_a_superseded_version_do_not_count():
    old = match("Laser therapy costs 43 euros.", "Price list 2025", 0.7)
    new = match("The price of laser therapy was withdrawn.", "Price list 2026", 0.5)
    question = "What does laser therapy cost?"
    assert features_of(question, [old, new]).best == new
    # Without the newer version, or with the version in the question, the old one counts.
    assert features_of(question, [old]).best == old
    assert features_of("What did laser therapy cost in 2025?", [old, new]).best == old


def test_versions_without_an_order_all_count():
    """Each supersedes another: by dates, or where one date is missing by the titles."""
    dates = datetime(2026, 1, 2, tzinfo=UTC), None, datetime(2026, 1, 1, tzinfo=UTC)
    versions = [
        match(f"Rule {number}.", f"Rules, revision {number}", 0.5 + number / 10, occurred_at=date)
        for number, date in enumerate(dates, start=1)
    ]
    assert features_of("Which rule?", versions).best == versions[-1]


def test_coverage_of_a_row_counts_the_names_of_its_columns():
    header, rows = "| Ticket | High season |\n| --- | --- |", "| Adult | 24.00 |\n| Camper van | 98.00 |"
    question = "What is the high season ticket of a camper van?"
    table = match(f"{header}\n{rows}", similarity=0.5)
    assert features_of(question, [table]).coverage == pytest.approx(1.0)
    # The last paragraph is no row.
    apart = match(f"{header}\n| Adult | 24.00 |\n\nNo camper van.", similarity=0.5)
    assert features_of(question, [apart]).coverage < 0.7


def test_a_rare_word_weighs_more_than_a_common_one():
    common = "The pump is old. The pump is new. The pump is red. "
    with_common = match(f"{common} The pump hums.", similarity=0.5)
    question = "Which pump vibrates?"
    rare = features_of(question, [match(f"{common} It vibrates.", similarity=0.5)]).coverage
    assert rare > features_of(question, [with_common]).coverage


def test_function_words_of_the_question_do_not_count():
    for question, text in (
        ("Who rents the hall?", "Clubs rent the hall."),
        ("Wann und von wem wird die Halle geöffnet?", "Kim hat die Halle geöffnet."),
        ("Combien coûte la visite de la laiterie ?", "La visite de la laiterie coûte 4 euros."),
        ("¿Cuándo se puede entrar en la zona?", "Para entrar en la zona basta un pase."),
    ):
        assert features_of(question, [match(text)]).coverage == pytest.approx(1.0)
    assert features_of("What is it?", [MANUAL]).coverage == 0.0, "no other words"


def test_identifiers_numbers_dates_and_names_that_no_match_contains_are_missing():
    cases = {
        "What does the FL-900 weigh?": ("FL-900",),
        "Does it weigh 200 g?": ("200 g",),
        "What did it weigh in December 2031?": ("December 2031",),
        "Is the office of Coldtrace in Antwerp?": ("Antwerp",),
        "Is api.example.org its address?": ("api.example.org",),
    }
    assert {question: missing(question) for question in cases} == cases


def test_what_a_match_contains_is_not_missing():
    questions = (
        "What does the FL-300 weigh?", "what does the fl300 weigh?", "Does it weigh 118 g?",
        "Where is Coldtrace?", "Is Coldtrace's office in Utrecht?", "Besides Coldtrace, who sells it?",
    )  # fmt: skip
    assert [question for question in questions if missing(question)] == []
    assert features_of("How much Saharan dust falls?", [match("Dust of the Sahara falls.")]).missing == ()
    assert features_of("Does Coldtrace sell the FL-900?", [MANUAL, match("An FL-900 is new.")]).missing == ()
    date = datetime(2031, 12, 1, tzinfo=UTC)
    dated = match("It weighs 118 g.", title="FL-900 guide", occurred_at=date, similarity=0.5)
    assert features_of("What did the FL-900 weigh in December 2031?", [dated]).missing == ()


def test_a_missing_name_is_as_the_question_writes_it():
    assert missing("Does Strauß AG deliver to Kaltbach?") == ("Strauß AG", "Kaltbach")
    assert missing("How big is the party at Artemis Art?") == ("Artemis Art",)


def test_a_day_is_missing_outside_of_the_lists_and_ranges_of_dates():
    for text, day, is_missing in (
        ("On 24 and 31 December 2026 the chat closes at 16:00.", "24 December 2026", False),
        ("The works are closed from 10 to 16 August 2026.", "13 August 2026", False),
        ("Closed 28 December 2026 – 3 January 2027.", "1 January 2027", False),
        ("Geschlossen vom 10. bis 16. August 2026.", "11. August 2026", False),
        ("The works are closed from 10 to 16 August 2026.", "17 August 2026", True),
        ("It is closed on 10 August and on 20 August 2026.", "17 August 2026", True),
        ("The offer holds from 1 January to 31 December 2026.", "17 August 2026", True),
    ):
        expected = (day,) if is_missing else ()
        assert features_of(f"Is it open on {day}?", [match(text)]).missing == expected


def test_a_negation_that_no_match_has_is_a_gap():
    assert features_of("What can't the FL-300 weigh?", [MANUAL]).lacks_negation
    assert not features_of("What does it not measure?", [MANUAL]).lacks_negation
    assert not features_of("What does it measure?", [MANUAL]).lacks_negation


def test_the_relevance_is_the_reranker_s_best():
    matches = [match(relevance=relevance) for relevance in (0.2, 0.7)]
    assert features_of("Where is it?", matches).relevance == 0.7
    assert features_of("Where is it?", [match()]).relevance is None


@pytest.mark.parametrize(
    ("question", "text", "expected"),
    [
        ("Wie schwer ist das Gerät mit seinem Akku?", MANUAL.text, True),
        ("¿Cuánto pesa el aparato con la batería?", MANUAL.text, True),
        ("How heavy is it?", MANUAL.text, False),
        ("Wie schwer ist das Gerät?", "Das Gerät wiegt mit dem Akku 118 g, und Wind misst es nicht.", False),
        # A table and a question of names have no clear language.
        ("Wie schwer ist das Gerät?", "| Modell | g |\n|---|---|\n| FL-300 | 118 |", False),
        ("FL-300 Akku", MANUAL.text, False),
        # One word of another language is none.
        ("die cast tolerance", MANUAL.text, False),
        ("Los Angeles office", MANUAL.text, False),
    ],
)
def test_a_match_is_in_another_language_where_both_are_clear(question: str, text: str, expected: bool):
    assert features_of(question, [match(text, similarity=0.6)]).is_other_language is expected


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("How many people live in the United States?", "The USA has 300 million people."),
        ("What does the EU say?", "The rules of the European Union say no."),
        ("Who signed PPR 9087?", "PPR-9087 was signed by Lee."),
        ("Who may file 1040NR-EZ?", "Form 1040NR/1040NR-EZ is filed by others."),
        ("How do I use Wi-Fi?", "Use the WiFi as shown."),
        ("Where is São Paulo?", "Sao Paulo is in Brazil."),
        ("What is new in iOS17?", "iOS 17 has another clock."),
        ("What are 3 reasons for the delay?", "Rain, wind and snow delayed it."),
    ],
)
def test_another_spelling_is_not_missing(question: str, text: str):
    assert features_of(question, [match(text)]).missing == ()


def test_a_similar_number_or_name_is_missing():
    assert features_of("Is level 5 allowed?", [match("Level 5.3 is allowed, and 15 too.")]).missing == ("5",)
    assert features_of("What does the EU say?", [match("Each unit says no.")]).missing == ("EU",)
    assert features_of("What happened after 3 days?", [match("It rained.")]).missing == ("3 days",)
    assert features_of("Is room 12 always free?", [match("Room 13 is always free.")]).missing == ("12",)
    assert features_of("What does AI say?", [match("Anna Ivanova says no.")]).missing == ("AI",)
    persons = features_of("What does Heidi Ruud earn?", [match("The HR department pays all.")])
    assert persons.missing == ("Heidi Ruud",)
    # German nouns have capitals.
    assert features_of("Wie viele Stellen waren Ende 2025 besetzt?", [match("2025: 6.")]).missing == ()
