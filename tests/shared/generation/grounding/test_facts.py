"""Numbers, dates and names however they are written: what says the same is the same, and nothing else is."""

from shared.generation.grounding.facts import facts_in, forms_of
from shared.generation.grounding.proper_names import names_in


def holds(source: str, sentence: str) -> bool:
    forms = forms_of(facts_in(source))
    facts = facts_in(sentence)
    assert facts, sentence
    return all(fact.accepted & forms for fact in facts)


SAME = [
    ("1,000", "1000"), ("1.000 Euro", "€1000"), ("10 000 euros", "10,000 euros"),
    ("10\u202f000 €", "EUR 10.000"), ("1,234.5", "1.234,5"), ("5 %", "five percent"), ("5 Prozent", "5 %"),
    ("$3 million", "3,000,000 dollars"), ("US$3bn", "$3 billion"), ("3 January 2025", "January 3rd, 2025"),
    ("2025-01-03", "3. Januar 2025"), ("03/01/2025", "3 January 2025"), ("3 January 2025", "in January 2025"),
    ("3 January 2025", "in 2025"), ("on 24 and 31 December", "on 24 December"),
    ("10–16 August 2026", "10 August to 16 August 2026"), ("le 3 janvier 2025", "2025-01-03"),
    ("3 maart 2025", "2025-03-03"), ("5 mei 2025", "5 May 2025"), ("9 augustus 2025", "2025-08-09"),
    ("INC-4821", "inc-4821"), ("FL-300", "FL300"), ("v1.2", "1.2"), ("14:30", "14:30"),
    ("00:30", "12:30 a.m."), ("https://a.example/b", "https://a.example/b."), ("-5 °C", "-5 °C"),
    ("20 mm", "20mm"),
    ("an 18-year-old", "18 years"), ("the 19th", "19"), ("| price | 40 |", "40 euros"),
    ("zwölf Monate", "12 months"), ("1914–1918", "1918"), ("rag_match", "rag_match"),
    # A malformed number has the meaning of its last mark.
    ("13,700,0", "13,700"),
]  # fmt: skip
OTHER = [
    ("1000", "100"), ("1", "1,000"), ("5 %", "5 euros"), ("$5", "€5"), ("$3 million", "$3"),
    ("$3 million", "$3 billion"), ("3 January 2025", "4 January 2025"), ("3 January 2025", "3 March 2025"),
    ("3 maart 2025", "3 mei 2025"), ("3 januari", "3 februari"),
    ("3 January 2025", "3 January 2024"), ("INC-4821", "INC-4822"), ("INC-4821", "4821"), ("v1.2", "v1.3"),
    ("1.2.3", "1.2.4"), ("14:30", "14:35"), ("12:00", "12 AM"), ("5 °C", "-5 °C"), ("5 km", "5 miles"),
    ("24 months", "24 days"), ("17", "1.7"), ("a@b.example", "c@b.example"), ("five", "six"),
    ("rag_match", "rag_search"),
]  # fmt: skip


def test_equal_facts_are_matched():
    assert [(source, text) for source, text in SAME if not holds(source, text)] == []


def test_different_facts_are_not_matched():
    assert [(source, text) for source, text in OTHER if holds(source, text)] == []


NAMES = [
    ("In Cork, the company was founded by Anna Smith's uncle.", ["cork", "anna", "smith"]),
    ("Customers pay. Toasters: Buy “Cheap” ones.", []),
    ("OPEC met in March.", ["opec"]),
    ("Die Kunden können den Toaster und das Kabel zurückgeben.", []),
    ("The History Of The Kettle Company", []),
    ("Le contrat du bureau nomme des experts et Jeanne Moreau.", ["jeanne", "moreau"]),
    ("De directeur is Marco Jansen, als de raad die benoemt.", ["marco", "jansen"]),
]


def test_names_have_a_capital_that_is_not_due_to_their_position():
    assert [(text, names_in(text)) for text, _ in NAMES] == NAMES
