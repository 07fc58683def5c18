"""What names by its form: addresses, handles, identifiers, code, paths; and dates."""

import pytest

from tests.shared.graph.reading import kinds, read

FORMS = [
    ("See INC-4821 and PAY-17.", {"INC-4821": "identifier", "PAY-17": "identifier"}),
    ("mail rosa@brightwater.example.", {"rosa@brightwater.example": "email"}),
    ("ask @acme/payments or @rosa", {"@acme/payments": "team", "@rosa": "person"}),
    ("the `retry_count` of `postgres`", {"retry_count": "identifier", "postgres": "identifier"}),
    ("call `flush()` first", {"flush": "identifier"}),
    ("in src/billing/main.py today", {"src/billing/main.py": "identifier"}),
    ("open config.yaml first", {"config.yaml": "identifier"}),
    ("the billing-service and the payments_api", {"billing-service": "service", "payments_api": "service"}),
    ("the on-call-team", {"on-call-team": "team"}),
    ("the class BillingService", {"BillingService": "name"}),
    ("the FL-300 logger", {"FL-300": "identifier"}),
]
DATES = [
    ("on 2025-09-22 it", "2025-09-22"), ("on 22 September 2025 it", "2025-09-22"),
    ("on September 22, 2025 it", "2025-09-22"), ("on the 22nd of September 2025 it", "2025-09-22"),
    ("am 22. September 2025 war", "2025-09-22"), ("am 22.9.2025 war", "2025-09-22"),
    ("le 22 septembre 2025 il", "2025-09-22"), ("el 22 de septiembre de 2025 ya", "2025-09-22"),
    ("2025年9月22日に", "2025-09-22"), ("in September 2025 it", "2025-09"),
    ("died 11 November 875 in", "0875-11-11"),
    ("at 2025-09-22T10:00:00Z it", "2025-09-22"),
]  # fmt: skip
NO_DATES = [
    "in 2025",
    "31 February 2025",
    "May 5",
    "version 2025.09.22.1",
    "on Monday",
    "10-11-12",
]


def test_a_pattern_matches_a_name(subtests: pytest.Subtests):
    for text, expected in FORMS:
        with subtests.test(text=text):
            assert kinds(text) == expected


def test_a_date_has_one_form(subtests: pytest.Subtests):
    for text, expected in DATES:
        with subtests.test(text=text):
            (name,) = read(text).names
            assert (name.name, name.kind) == (expected, "date")
            assert name.surfaces[0] in text


def test_an_invalid_day_or_month_is_not_a_date(subtests: pytest.Subtests):
    for text in NO_DATES:
        with subtests.test(text=text):
            assert "date" not in kinds(text).values()


NO_FORMS = ["https://docs.example/a/b-service/c_d", "and/or", "24/7", "non-trivial", "`a b c`", "e.g. this"]


def test_a_pattern_does_not_match(subtests: pytest.Subtests):
    for text in NO_FORMS:
        with subtests.test(text=text):
            assert kinds(text) == {}
