"""Relations told by lines: keys and values, lists, tables and owners of code."""

from tests.shared.graph.reading import kinds, relation_texts

SERVICE = "billing-service"
LINES = [
    ("Owner: Rosa Keane", ["billing-service OWNED_BY Rosa Keane"]),
    ("**Owner:** Rosa Keane, accounts. Checked by nobody.", ["billing-service OWNED_BY Rosa Keane"]),
    ("Owner: the engineer, Rosa Keane", []),
    (
        "dependsOn:\n  - postgres\n  - redis",
        ["billing-service DEPENDS_ON postgres", "billing-service DEPENDS_ON redis"],
    ),
    ("Depends on: Kafka and Redis", ["billing-service DEPENDS_ON Kafka", "billing-service DEPENDS_ON Redis"]),
    ("depends_on: [kafka, redis]", ["billing-service DEPENDS_ON kafka", "billing-service DEPENDS_ON redis"]),
    ("Root cause: PAY-17", ["billing-service CAUSED_BY PAY-17"]),
    ("owner = payments-team", ["billing-service OWNED_BY payments-team"]),
    ("name: checkout\nowner: payments", ["checkout OWNED_BY payments"]),
    ("INC-17\nComponent: Ledger\nReporter: Rosa Keane", ["INC-17 REPORTED_BY Rosa Keane"]),
    ("Component: Ledger\n\nOwner: Rosa Keane", ["billing-service OWNED_BY Rosa Keane"]),
    ("**Owner:** Rosa Keane • **Published:** 2025-12-01", ["billing-service OWNED_BY Rosa Keane"]),
    ("Eigentümer: Rosa Keane", ["billing-service OWNED_BY Rosa Keane"]),
]
SILENT = [
    "Owner: none", "Cause: the door was left open", "Status: active", "Owner: we do not know yet who it is",
    "https://owner.example: x", "Reporter: early shift, Hala 3", "Reporter: Rosa Keane / Component: Ledger",
    "```yaml\nowner: Rosa Keane\n```", "    owner: Rosa Keane", "Owner: Rosa Keane, not anna",
    "Owner: Rosa Keane, unless on leave", "Owner: Rosa Keane, formerly Ann Lee",
]  # fmt: skip
TABLE = """
| Service | Owner | Depends on |
|---|---|---|
| a-service | Payments Team | postgres |
| b-service | | Kafka |
"""


def test_a_line_states_a_relation():
    assert [(text, relation_texts(text, SERVICE)) for text, _ in LINES] == LINES
    assert [text for text in SILENT if relation_texts(text, SERVICE)] == []
    assert relation_texts("Owner: Rosa Keane", "What we talked about") == [], "without a subject"


def test_a_line_s_subject_is_the_nearest_heading_that_is_a_name():
    assert relation_texts("# Teams\n\nWe run Ledger API.\n\n## Ledger API\n\nOwner: Rosa Keane", SERVICE) == [
        "Ledger API OWNED_BY Rosa Keane"
    ]


def test_table_rows_state_relations_by_their_columns():
    assert relation_texts(TABLE) == [
        "a-service OWNED_BY Payments Team",
        "a-service DEPENDS_ON postgres",
        "b-service DEPENDS_ON Kafka",
    ]
    assert relation_texts("| Place | Loggers |\n|---|---|\n| Mallow | 18 |") == []


def test_code_owners_own_their_paths():
    text = "# who reviews what\n* @rosa.keane\n/services/billing/ @acme/payments bob@acme.example\n"
    assert relation_texts(text) == [
        "/services/billing/ OWNED_BY @acme/payments",
        "/services/billing/ OWNED_BY bob@acme.example",
    ]
    assert kinds(text) == {
        "@rosa.keane": "person",
        "/services/billing/": "identifier",
        "@acme/payments": "team",
        "bob@acme.example": "email",
    }
