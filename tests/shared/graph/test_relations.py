"""Relations of sentences in sure forms, and sentences that state none."""

from shared.graph.rule_extractor import extract
from tests.shared.graph.reading import relation_texts

OPERATIONS = [
    ("Rosa Keane owns billing-service.", ["billing-service OWNED_BY Rosa Keane"]),
    ("The billing-service is owned by the Payments Team.", ["billing-service OWNED_BY Payments Team"]),
    ("The billing-service's owner is Rosa Keane.", ["billing-service OWNED_BY Rosa Keane"]),
    ("Rosa Keane is the owner of billing-service.", ["billing-service OWNED_BY Rosa Keane"]),
    ("Payments Team is responsible for a-service and b-service.",
     ["a-service OWNED_BY Payments Team", "b-service OWNED_BY Payments Team"]),
    ("The Ledger API is part of Finance Platform.", ["Ledger API PART_OF Finance Platform"]),
    ("The billing-service depends on Kafka, PostgreSQL and Redis.",
     ["billing-service DEPENDS_ON Kafka", "billing-service DEPENDS_ON PostgreSQL",
      "billing-service DEPENDS_ON Redis"]),
    ("The billing-service, which relies on Kafka, is old.", ["billing-service DEPENDS_ON Kafka"]),
    ("Kafka is required by billing-service.", ["billing-service DEPENDS_ON Kafka"]),
    ("The billing-service is owned by Payments Team and depends on Kafka.",
     ["billing-service OWNED_BY Payments Team", "billing-service DEPENDS_ON Kafka"]),
    ("`a-service` uses [Stripe Connect](https://stripe.example/connect).",
     ["a-service DEPENDS_ON Stripe Connect"]),
    ("- **Frostline Cloud** is built on Stripe.", ["Frostline Cloud DEPENDS_ON Stripe"]),
    ("Marek Nowak reports to Rosa Keane.", ["Marek Nowak REPORTS_TO Rosa Keane"]),
    ("Marek Nowak's manager is Rosa Keane.", ["Marek Nowak MANAGED_BY Rosa Keane"]),
    ("The Payments Team is led by Rosa Keane.", ["Payments Team LED_BY Rosa Keane"]),
    ("PR-332 fixes INC-4821 and closes INC-4822.",
     ["INC-4821 FIXED_BY PR-332", "INC-4822 FIXED_BY PR-332"]),
    ("Since the move in spring and for the time being, the billing-service is owned by the\nPayments Team.",
     []),
    ("Since spring all is well with us. The billing-service is owned by the\nPayments Team. So it\n"
     "is with the others.", ["billing-service OWNED_BY Payments Team"]),
]  # fmt: skip
GENERAL = [
    ("Casablanca was written and directed by Michael Curtiz.",
     ["Casablanca WRITTEN_BY Michael Curtiz", "Casablanca DIRECTED_BY Michael Curtiz"]),
    ("Casablanca is a 1942 West German film directed by Michael Curtiz, starring Ann Lee, Bo Ray and Cy Day.",
     ["Casablanca DIRECTED_BY Michael Curtiz", "Casablanca STARS Ann Lee", "Casablanca STARS Bo Ray",
      "Casablanca STARS Cy Day"]),
    ("Blue Sky is the third album by American rock band The Dandy Birds, released in 2001.",
     ["Blue Sky PERFORMED_BY Dandy Birds"]),
    ("Blue Sky is an album by Hong Kong singer Ann Lee.", ["Blue Sky PERFORMED_BY Ann Lee"]),
    ("Runmar Point is located in Sweden.", ["Runmar Point LOCATED_IN Sweden"]),
    ("Runmar Point is located near Mallow.", []),
    ("Frost Labs is a small maker of clocks, based in Mallow.", ["Frost Labs LOCATED_IN Mallow"]),
    ("Rosa Keane was born on 3 May 1970 in Limerick, Ireland and died in Mallow.",
     ["Rosa Keane BORN_IN Limerick", "Rosa Keane DIED_IN Mallow"]),
    ("Alice Brown was the second daughter of Carl I, Duke of Tuscany and Dora Brown.",
     ["Alice Brown CHILD_OF Carl I", "Alice Brown CHILD_OF Dora Brown"]),
    ("Zed Brown married Alice Brown, daughter of Carl Brown.", ["Alice Brown SPOUSE_OF Zed Brown"]),
    ("Alice Brown's brother Zed Brown left.", ["Alice Brown SIBLING_OF Zed Brown"]),
    ("George East succeeded Helen West.", ["Helen West SUCCEEDED_BY George East"]),
    ("Frost Labs is a subsidiary of Halden Instruments.", ["Frost Labs SUBSIDIARY_OF Halden Instruments"]),
]  # fmt: skip
LANGUAGES = [
    ("Der BillingService gehört dem PaymentsTeam.", ["BillingService OWNED_BY PaymentsTeam"]),
    ("Der BillingService hängt von PostgreSQL ab.", ["BillingService DEPENDS_ON PostgreSQL"]),
    ("El servicio Facturo depende de Kafka.", ["Facturo DEPENDS_ON Kafka"]),
    ("INC-3 a été causé par PAY-8.", ["INC-3 CAUSED_BY PAY-8"]),
]
NO_STATEMENTS = [
    # Negations, conditions, hedges, former times and questions.
    "The billing-service does not depend on Kafka.", "Does the billing-service depend on Kafka?",
    "The billing-service may depend on Kafka.", "The a-service depends on Kafka if Redis is down.",
    "The a-service was previously owned by Rosa Keane.", "Until March the a-service is owned by Rosa Keane.",
    "Rosa Keane is the deputy head of Frost Labs.", "Do not say that Alice Brown's brother Zed Brown left.",
    # Names that are cut short, and lists of alternatives.
    "The a-service requires Kafka, Redis, or RabbitMQ.",
    # A subject that is not at the beginning, or another word between.
    "Rosa Keane asked the team responsible for Mallow.", "Hugh Grey married Guy Black's widow.",
    "They left Penshurst, Kent, eldest son of Edward Brown.",
    "The a-service depends on the weather in Mallow.",
    # Headings, rows and code.
    "# Rosa Keane owns Mallow", "```\nRosa Keane owns Mallow.\n```",
    "~~~ python\nx = 1\n\nRosa Keane owns Mallow.", "    Rosa Keane owns Mallow.",
    'Call `log_memory("x")`: Rosa Keane owns Mallow.', "Rosa Keane met Marek Nowak.",
]  # fmt: skip


def test_a_sentence_states_a_relation():
    statements = OPERATIONS + GENERAL + LANGUAGES
    assert [(text, relation_texts(text)) for text, _ in statements] == statements


def test_a_sentence_states_no_relation():
    assert [text for text in NO_STATEMENTS if relation_texts(text)] == []


PRONOUNS = [
    ("Billing Service", "It depends on Kafka.", ["Billing Service DEPENDS_ON Kafka"]),
    ("Casablanca (film)", "Casablanca is old. The film was directed by Michael Curtiz.",
     ["Casablanca DIRECTED_BY Michael Curtiz"]),
    ("Michael Curtiz", "Michael Curtiz (1886 – 1962) was old. He was the son of Max Kaminer.",
     ["Michael Curtiz CHILD_OF Max Kaminer"]),
    # Another name, another paragraph, a thing that is no person, a title that is no name.
    ("Billing Service", "Kafka is new. It depends on Redis.", []),
    ("Billing Service", "Billing Service is new.\n\nIt depends on Redis.", []),
    ("Billing Service", "He depends on Kafka.", []),
    ("How we work and why", "It depends on Kafka.", []),
]  # fmt: skip


def test_a_pronoun_stands_for_the_title_in_the_first_paragraph():
    assert [(title, text, relation_texts(text, title)) for title, text, _ in PRONOUNS] == PRONOUNS


def test_a_code_block_may_begin_in_one_chunk_and_end_in_another():
    chunks = ["Run it:\n```bash\nstart\n", "Rosa Keane owns Mallow.\n```\nRosa Keane owns Kafka."]
    _, second = extract("Notes", chunks)
    assert [one.object for one in second.relations] == ["Rosa Keane"]
    assert [one.subject for one in second.relations] == ["Kafka"]


def test_cycles_are_kept_as_stated():
    text = "The a-service depends on b-service. The b-service depends on a-service."
    assert relation_texts(text) == ["a-service DEPENDS_ON b-service", "b-service DEPENDS_ON a-service"]
