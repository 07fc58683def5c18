"""What names by its form: addresses, handles, identifiers, code and paths."""

from tests.shared.graph.reading import kinds

FORMS = [
    ("See INC-4821 and PAY-17.", {"INC-4821": "identifier", "PAY-17": "identifier"}),
    ("mail rosa@brightwater.example.", {"rosa@brightwater.example": "email"}),
    ("ask @acme/payments or @rosa", {"@acme/payments": "team", "@rosa": "person"}),
    ("the `retry_count` of `postgres`", {"retry_count": "identifier", "postgres": "identifier"}),
    ("call `flush()` first", {"flush": "identifier"}),
    ("in src/billing/main.py today", {"src/billing/main.py": "identifier"}),
    ("the billing-service and the payments_api", {"billing-service": "service", "payments_api": "service"}),
    ("the on-call-team", {"on-call-team": "team"}),
    ("the FL-300 logger", {"FL-300": "identifier"}),
]


def test_a_pattern_matches_a_name():
    assert [(text, kinds(text)) for text, _ in FORMS] == FORMS


NO_FORMS = [
    "https://docs.example/a/b-service/c_d", "and/or", "24/7", "non-trivial", "`a b c`", "e.g. this",
    "on 2025-09-22", "on 22 September 2025", "am 22.9.2025", "in September 2025", "version 2025.09.22.1",
    "10-11-12",
]  # fmt: skip


def test_a_pattern_does_not_match():
    assert [text for text in NO_FORMS if kinds(text)] == []
