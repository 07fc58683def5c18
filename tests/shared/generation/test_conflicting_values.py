"""Conflicts: other values for the same thing, and none between rows, products, labels or years."""

from datetime import UTC, datetime

from shared.generation.conflicting_values import ValueConflict, conflicting
from shared.text.stemming import content_words
from shared.types import ExtractedSentence
from tests.shared.examples import match


def sentence(
    text: str, title: str, year: int | None = None, document: str | None = None
) -> ExtractedSentence:
    moment = datetime(year, 1, 1, tzinfo=UTC) if year else None
    source = match(text, document or f"{title} {year} {text}", title=title, occurred_at=moment)
    return ExtractedSentence(text, 1, source, 0, len(text), content_words(text))


def conflicts_of(one: str, title: str, other: str, other_title: str) -> tuple[ValueConflict, ...]:
    return conflicting([sentence(one, title), sentence(other, other_title)])


def test_other_values_for_the_same_thing_conflict():
    cases = [
        ("The canteen closes at 13:45.", "House rules", "The canteen closes at 14:00.", "Guide for guests"),
        ("The deposit is 100 euros a bike.", "Rental", "The deposit is 150 euros a bike.", "Questions"),
        ("The next audit begins on 3 May.", "Audit", "The next audit begins on 9 June.", "Calendar"),
        ("The warranty is 24 months.", "Manual", "The warranty is 36 months.", "Manual, revision 2"),
        ("M1 Swift: Price 24 €.", "Price list 2025", "M1 Swift: Price 29 €.", "Price list 2026"),
        (
            "Die Kündigungsfrist beträgt 30 Tage.", "AGB, Stand März 2025",
            "Die Kündigungsfrist beträgt 60 Tage.", "AGB, Stand Mai 2026",
        ),
    ]  # fmt: skip
    assert [case for case in cases if len(conflicts_of(*case)) != 1] == []


def test_other_things_do_not_conflict():
    cases = [
        ("The pump weighs 96 kg.", "Pump P-210", "The pump weighs 96 kg.", "Pump P-210, revision 2"),
        ("The pump weighs 96 kg.", "Pump P-210 data", "The pump weighs 120 kg.", "Pump P-310 data"),
        ("M1 Swift: Price 24 €.", "Bikes", "M1 Swift: Price 29 €.", "Scooters"),
        ("M1 Swift: Price 24 €.", "Prices 2025", "M2 Carry: Price 29 €.", "Prices 2026"),
        ("The FL-200 logger accepts 6 °C.", "Limits", "The FL-300 logger accepts 8 °C.", "Guide"),
        ("In 2025 sales were 5 million euros.", "Report", "In 2026 sales were 6 million euros.", "Review"),
        ("Standard costs 4.50 euros.", "Prices 2025", "Plus costs 7.20 euros.", "Prices 2026"),
        ("Milk above 8 °C is rejected.", "Rules 2025", "Milk is stirred for 5 minutes.", "Rules 2026"),
    ]  # fmt: skip
    assert [case for case in cases if conflicts_of(*case)] == []


def test_sentences_of_one_document_do_not_conflict():
    texts = ("Bay 3 opens at 08:00.", "Bay 3 opens at 09:00.")
    assert conflicting([sentence(text, "Bays", document="bays") for text in texts]) == ()


def test_the_newer_is_told_by_date_then_title_then_sentence():
    old, new = "The room costs 45 euros a day.", "The room costs 55 euros a day."
    cases = [
        ("date", sentence(new, "Prices 2025", 2026), sentence(old, "Prices 2026", 2025)),
        ("year", sentence(new, "Prices 2026"), sentence(old, "Prices 2025")),
        ("revision", sentence(new, "Prices, revision 10"), sentence(old, "Prices, revision 9")),
        ("sentence", sentence("It ends in May 2027.", "Audit"), sentence("It ends in May 2026.", "Audit")),
        ("order", sentence(new, "Prices"), sentence(old, "Prices")),
    ]
    for case, newer, older in cases:
        pairs = [(newer, older)] if case == "order" else [(newer, older), (older, newer)]
        for pair in pairs:
            (conflict,) = conflicting(pair)
            assert (conflict.newer, conflict.older) == (newer, older)


def test_a_newer_document_withdraws_a_value():
    rule = "The fee for a lost key is 20 euros."
    cases = [
        ("The fee of 20 euros for lost keys is withdrawn.", 2026, True),
        ("We no longer charge 20 euros for a key.", 2026, True),
        ("Die 20 Euro für den Key sind gestrichen.", 2026, True),
        # An older document, another value, another thing, a date, no withdrawal.
        ("The fee of 20 euros for lost keys is withdrawn.", 2024, False),
        ("The fee of 30 euros for lost keys is withdrawn.", 2026, False),
        ("The parking place of 20 euros is withdrawn.", 2026, False),
        ("Since May a lost key is on a list of 20 euros.", 2026, False),
    ]
    for text, year, is_withdrawn in cases:
        conflicts = conflicting([sentence(rule, "Handbook", 2025), sentence(text, "Notes", year)])
        assert [conflict.newer.text for conflict in conflicts] == [text] * is_withdrawn
    days = (
        sentence("The audit ends on 3 May.", "Plan", 2025),
        sentence("The audit of 3 May is cancelled.", "Mail", 2026),
    )
    assert conflicting(days) == ()
