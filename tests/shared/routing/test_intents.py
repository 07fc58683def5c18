"""What anybody's question wants beyond its words."""

import pytest

from shared.routing.intents import fresh, org_level, timeless

OF_THE_ORG = [
    ("who owns the billing service", "ownership", "who owns"),
    ("Who is responsible for on-call?", "ownership", "Who is responsible"),
    ("which team maintains checkout", "ownership", "which team maintains"),
    ("code owners of the parser", "ownership", "code owners"),
    ("ownership of the billing service", "ownership", "ownership of the billing service"),
    ("what is our travel policy", "policy", "policy"),
    ("password policies", "policy", "policies"),
    ("retention policy", "policy", "policy"),
    ("owned by which team", "ownership", "owned by which team"),
    ("who owns this service", "ownership", "who owns"),
    ("who is responsible for the payroll", "ownership", "who is responsible"),
    ("the goals of our company", "the whole org", "our company"),
    ("code of conduct", "policy", "code of conduct"),
    ("Q3 roadmap", "roadmap", "roadmap"),
    ("company goals", "roadmap", "company goals"),
    ("org-wide freeze", "the whole org", "org-wide"),
    ("used across all teams", "the whole org", "across all teams"),
    ("the employee handbook", "the whole org", "employee handbook"),
]
OF_NO_ORG = (
    "", "row-level security policy", "row level security policies", "RLS policies for tenants",
    "CORS policy error",
    "cache eviction policy", "retry policy of the client", "create policy on documents", "IAM policy",
    "policy.json",
    "the policy engine", "reward policy", "network policy", "owner_id column", "rust ownership rules",
    "company_id",
    "company table", "organizations.name", "S3 bucket policy", "kettle",
    "who owns this bug", "who owns this file", "who owns my laptop", "who maintains this repo",
    "who is responsible for this ticket", "owned by which user", "insurance policy number",
    "AWS policy document", "Kyverno/OPA policy", "OPA policy", "password policy regex",
    "security policy in Kubernetes", "policies on AWS", "roadmap component crashes",
    "service owner field in yaml", "all teams channel", "every team member", "our company's laptop",
    "our company laptops", "OKR template",
)  # fmt: skip


@pytest.mark.parametrize(("question", "what", "word"), OF_THE_ORG)
def test_what_is_an_org_s_is_asked_of_the_org(question: str, what: str, word: str):
    assert org_level(question) == (what, word)


@pytest.mark.parametrize("question", OF_NO_ORG)
def test_what_only_sounds_like_it_is_not(question: str):
    assert org_level(question) is None


def test_a_person_s_policy_beside_a_machine_s_is_heard():
    assert org_level("is the retry policy in our travel policy?") == ("policy", "policy")


@pytest.mark.parametrize("question", ["latest incidents", "most  recent release", "what is currently broken"])
def test_what_is_new_is_asked_for(question: str):
    assert fresh(question)


@pytest.mark.parametrize("question", ["latest_version", "presently", "recently.py", "kettle"])
def test_what_only_looks_new_is_not(question: str):
    assert fresh(question) is None


@pytest.mark.parametrize(
    "question", ["history of the billing service", "what does SLA mean", "the oldest bug"]
)
def test_what_does_not_age_is_asked_for(question: str):
    assert timeless(question)


@pytest.mark.parametrize(
    "question", ["whatever", "forever young", "how many incidents", "history_id", "how do I", "how to"]
)
def test_what_ages_is_not_timeless(question: str):
    assert timeless(question) is None
