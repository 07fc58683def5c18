"""Intents of questions."""

from shared.retrieval.query.question_intents import freshness, org_level, timeless

OF_THE_ORG = [
    ("who owns the billing service", "ownership", "who owns"),
    ("Who is responsible for on-call?", "ownership", "Who is responsible"),
    ("which team maintains checkout", "ownership", "which team maintains"),
    ("ownership of the billing service", "ownership", "ownership of"),
    ("what is our travel policy", "policy", "policy"),
    ("password policies", "policy", "policies"),
    ("the goals of our company", "the whole org", "our company"),
    ("code of conduct", "policy", "code of conduct"),
    ("Q3 roadmap", "roadmap", "roadmap"),
    ("company goals", "roadmap", "company goals"),
    ("org-wide freeze", "the whole org", "org-wide"),
    ("used across all teams", "the whole org", "across all teams"),
    ("the employee handbook", "the whole org", "employee handbook"),
]
OF_NO_ORG = (
    "", "row-level security policy", "retry policy of the client", "policy.json", "network policy",
    "owner_id column", "rust ownership rules", "company_id", "company table", "organizations.name", "kettle",
    "who owns this bug", "who owns this file", "who owns my laptop", "who maintains this repo",
    "who is responsible for this ticket", "owned by which user",
)  # fmt: skip


def test_a_question_about_the_org_is_searched_in_the_org():
    assert [(question, *(org_level(question) or ())) for question, _, _ in OF_THE_ORG] == OF_THE_ORG


def test_a_question_that_only_sounds_like_it_is_not():
    assert [question for question in OF_NO_ORG if org_level(question) is not None] == []


def test_a_person_s_policy_beside_a_machine_s_counts():
    assert org_level("is the retry policy in our travel policy?") == ("policy", "policy")


def test_a_question_asks_for_new_or_for_timeless_documents():
    for intent, questions, others in (
        (freshness, ["latest incidents", "most  recent release", "what is currently broken"],
         ["latest_version", "presently", "recently.py", "kettle"]),
        (timeless, ["history of the billing service", "what does SLA mean", "the oldest bug"],
         ["whatever", "forever young", "how many incidents", "history_id", "how do I", "how to"]),
    ):  # fmt: skip
        assert [question for question in questions + others if intent(question)] == questions
