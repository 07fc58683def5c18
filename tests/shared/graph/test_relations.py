"""What sentences say is related, which way, and how surely."""

import pytest

from tests.shared.graph.reading import said, sure

OPERATIONS = [
    ("Rosa Keane owns billing-service.", ["billing-service OWNED_BY Rosa Keane"]),
    ("The billing-service is owned by the Payments Team.", ["billing-service OWNED_BY Payments Team"]),
    ("The billing-service's owner is Rosa Keane.", ["billing-service OWNED_BY Rosa Keane"]),
    ("The owner of billing-service is Rosa Keane.", ["billing-service OWNED_BY Rosa Keane"]),
    ("Payments Team is responsible for a-service and b-service.",
     ["a-service OWNED_BY Payments Team", "b-service OWNED_BY Payments Team"]),
    ("Payments Team maintains PaymentsCore.", ["PaymentsCore OWNED_BY Payments Team"]),
    ("The billing-service belongs to the Payments Team.", ["billing-service OWNED_BY Payments Team"]),
    ("The Ledger API is part of Finance Platform.", ["Ledger API PART_OF Finance Platform"]),
    ("Mr Brown is a member of the Payments Team.", ["Brown MEMBER_OF Payments Team"]),
    ("The billing-service depends on Kafka.", ["billing-service DEPENDS_ON Kafka"]),
    ("The billing-service depends on Kafka, PostgreSQL and Redis.",
     ["billing-service DEPENDS_ON Kafka", "billing-service DEPENDS_ON PostgreSQL",
     "billing-service DEPENDS_ON Redis"]),
    ("The billing-service, which relies on Kafka, is old.", ["billing-service DEPENDS_ON Kafka"]),
    ("Kafka is required by billing-service.", ["billing-service DEPENDS_ON Kafka"]),
    ("The a-service and the b-service require Kafka.", ["a-service DEPENDS_ON Kafka",
    "b-service DEPENDS_ON Kafka"]),
    ("The billing-service is owned by Payments Team and depends on Kafka.",
     ["billing-service OWNED_BY Payments Team", "billing-service DEPENDS_ON Kafka"]),
    ("Marek Nowak reports to Rosa Keane.", ["Marek Nowak REPORTS_TO Rosa Keane"]),
    ("Marek Nowak is managed by Rosa Keane.", ["Marek Nowak REPORTS_TO Rosa Keane"]),
    ("Marek Nowak's manager is Rosa Keane.", ["Marek Nowak REPORTS_TO Rosa Keane"]),
    ("The Payments Team is led by Rosa Keane.", ["Payments Team LED_BY Rosa Keane"]),
    ("INC-4821 was caused by PAY-17.", ["INC-4821 CAUSED_BY PAY-17"]),
    ("PAY-17 caused INC-4821.", ["INC-4821 CAUSED_BY PAY-17"]),
    ("PAY-17 led to INC-4821.", ["INC-4821 CAUSED_BY PAY-17"]),
    ("INC-4821 was due to PAY-17.", ["INC-4821 CAUSED_BY PAY-17"]),
    ("The root cause of INC-4821 was PAY-17.", ["INC-4821 CAUSED_BY PAY-17"]),
    ("INC-4821 was fixed by PR-332.", ["INC-4821 FIXED_BY PR-332"]),
    ("PR-332 fixes INC-4821 and closes INC-4822.", ["INC-4821 FIXED_BY PR-332",
    "INC-4822 FIXED_BY PR-332"]),
    ("INC-4821 was resolved in REL-12.", ["INC-4821 FIXED_BY REL-12"]),
]  # fmt: skip
GENERAL = [
    ("Casablanca is a 1942 film directed by Michael Curtiz.", ["Casablanca DIRECTED_BY Michael Curtiz"]),
    ("Casablanca was written and directed by Michael Curtiz.",
     ["Casablanca WRITTEN_BY Michael Curtiz", "Casablanca DIRECTED_BY Michael Curtiz"]),
    ("Michael Curtiz directed Casablanca.", ["Casablanca DIRECTED_BY Michael Curtiz"]),
    ("Rosa Keane works for Halden Instruments.", ["Rosa Keane WORKS_FOR Halden Instruments"]),
    ("Runmar Point is located in Sweden.", ["Runmar Point LOCATED_IN Sweden"]),
    ("Rosa Keane was born on 3 May 1970 in Limerick.", ["Rosa Keane BORN_IN Limerick"]),
    ("Owen Story (born 3 August 1984 in Burton) plays.", ["Owen Story BORN_IN Burton"]),
    ("Alice Brown is the daughter of Carl Brown and Dora Brown.",
     ["Alice Brown CHILD_OF Carl Brown", "Alice Brown CHILD_OF Dora Brown"]),
    ("Carl Brown is the father of Alice Brown.", ["Alice Brown CHILD_OF Carl Brown"]),
    ("Alice Brown's mother was Dora Brown.", ["Alice Brown CHILD_OF Dora Brown"]),
    ("They met Alice Brown, wife of Zed Brown.", ["Alice Brown SPOUSE_OF Zed Brown"]),
    ("Zed Brown married Alice Brown.", ["Alice Brown SPOUSE_OF Zed Brown"]),
    ("Alice Brown's brother Zed Brown left.", ["Alice Brown SIBLING_OF Zed Brown"]),
    ("International Machines was founded by Charles Flint.",
     ["International Machines FOUNDED_BY Charles Flint"]),
    ("Helen West was succeeded by George East.", ["Helen West SUCCEEDED_BY George East"]),
    ("George East succeeded Helen West.", ["Helen West SUCCEEDED_BY George East"]),
    ("Oslo Town is the capital of Norway.", ["Oslo Town CAPITAL_OF Norway"]),
    ("Frost Labs is a subsidiary of Halden Instruments.", ["Frost Labs SUBSIDIARY_OF Halden Instruments"]),
    ("Halden Instruments acquired Frost Labs.", ["Frost Labs ACQUIRED_BY Halden Instruments"]),
    ("The song was new. Blue Sky was performed by Ryan Adams.", ["Blue Sky PERFORMED_BY Ryan Adams"]),
]  # fmt: skip
TONGUES = [
    ("Der BillingService gehört dem PaymentsTeam.", ["BillingService OWNED_BY PaymentsTeam"]),
    ("Der BillingService hängt von PostgreSQL ab.", ["BillingService DEPENDS_ON PostgreSQL"]),
    ("INC-17 wurde durch PAY-4 verursacht.", ["INC-17 CAUSED_BY PAY-4"]),
    ("INC-17 wurde behoben durch PR-4.", ["INC-17 FIXED_BY PR-4"]),
    ("Rosa Keane berichtet an Marek Nowak.", ["Rosa Keane REPORTS_TO Marek Nowak"]),
    ("Das BillingModul ist Teil von PaymentsCore.", ["BillingModul PART_OF PaymentsCore"]),
    ("Le service Facturo dépend de Redis.", ["Facturo DEPENDS_ON Redis"]),
    ("Le service Facturo appartient à Rosa Keane.", ["Facturo OWNED_BY Rosa Keane"]),
    ("INC-3 a été causé par PAY-8.", ["INC-3 CAUSED_BY PAY-8"]),
    ("INC-3 a été corrigé par PR-8.", ["INC-3 FIXED_BY PR-8"]),
    ("Facturo fait partie de PaymentsCore et Facturo est bon.", ["Facturo PART_OF PaymentsCore"]),
    ("El servicio Facturo depende de Kafka.", ["Facturo DEPENDS_ON Kafka"]),
    ("INC-9 fue causado por PAY-2.", ["INC-9 CAUSED_BY PAY-2"]),
    ("INC-9 fue resuelto por PR-2.", ["INC-9 FIXED_BY PR-2"]),
    ("Rosa Keane reporta a Marek Nowak.", ["Rosa Keane REPORTS_TO Marek Nowak"]),
]
SILENT = [
    "The billing-service does not depend on Kafka.", "The billing-service no longer depends on Kafka.",
    "INC-1 was never caused by PAY-2.", "Does the billing-service depend on Kafka?",
    "Rosa Keane is not the owner of Halden.",
    "Kafka depends on Kafka.", "The billing-service depends on the weather in Mallow.",
    "Rosa Keane met Marek Nowak.",
    "Rosa Keane left. The owner came to Mallow.", "depends on", "owned by Rosa Keane",
    "The film was released during Diwali.",
    "Rosa Keane asked the team responsible for Mallow.", "# Rosa Keane owns Mallow",
    "Hugh Grey married Guy Black's widow.",
]  # fmt: skip


def test_a_sentence_states_a_relation(subtests: pytest.Subtests):
    for text, expected in OPERATIONS + GENERAL + TONGUES:
        with subtests.test(text=text):
            assert said(text) == expected


def test_a_sentence_states_no_relation(subtests: pytest.Subtests):
    for text in SILENT:
        with subtests.test(text=text):
            assert said(text) == []


IMPLIED = [
    ("Billing Service", "It depends on Kafka.", ["Billing Service DEPENDS_ON Kafka"]),
    ("Casablanca (film)",
    "The film was directed by Michael Curtiz.", ["Casablanca DIRECTED_BY Michael Curtiz"]),
    ("Michael Curtiz", "He was the son of Max Kaminer.", ["Michael Curtiz CHILD_OF Max Kaminer"]),
    ("Michael Curtiz", "His wife was Bess Meredyth.", ["Bess Meredyth SPOUSE_OF Michael Curtiz"]),
    ("Michael Curtiz", "Curtiz directed Casablanca.", ["Casablanca DIRECTED_BY Michael Curtiz"]),
    ("Notes", "The a-service is new. It depends on Kafka.", ["a-service DEPENDS_ON Kafka"]),
    ("Aldri annet enn sol", "Aldri annet enn sol is a film directed by Edith Carl.",
     ["Aldri annet enn sol DIRECTED_BY Edith Carl"]),
    ("Billing Service", "He depends on Kafka.", []),
    ("How we work and why", "It depends on Kafka.", []),
    ("Rosa Keane", "We met. The mail depends on Kafka.", []),
]  # fmt: skip


def test_a_pronoun_refers_to_the_topic_of_the_text(subtests: pytest.Subtests):
    for title, text, expected in IMPLIED:
        with subtests.test(title=title, text=text):
            assert said(text, title) == expected


def test_cycles_are_kept_as_stated():
    text = "The a-service depends on b-service. The b-service depends on a-service."
    assert said(text) == ["a-service DEPENDS_ON b-service", "b-service DEPENDS_ON a-service"]


def test_confidence_falls_from_statements_to_guesses_and_from_names_to_pronouns():
    stated = sure("The a-service depends on Kafka.")
    assert sure("The a-service may depend on Kafka.") < stated
    assert sure("The a-service probably depends on Kafka.") < stated
    assert sure("It depends on Kafka.", "Billing Service") < stated
    assert sure("The a-service uses Kafka.") < stated
