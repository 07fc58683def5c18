"""Questions, expanded for the search by rules."""

from shared.retrieval.query import MAX_LENGTH
from shared.retrieval.query.expansion import ABBREVIATIONS, MAX_ADDITIONS, Expansion, expand

FRAMED = [
    ("Can you please tell me who owns billing?", "who owns billing?"),
    ("hey team, could someone show me open bugs", "open bugs"),
    ("I'm looking for the kettle's manual, please", "the kettle's manual"),
    ("I am looking for kettles", "kettles"), ("Do you know where it is? Thanks!", "where it is?"),
    ("  kettles \n and   pots ", "kettles and pots"),
    ("Kannst du mir bitte sagen, wo der Kessel steht?", "wo der Kessel steht?"),
    ("pouvez-vous me dire où il est", "où il est"), ("por favor, muéstrame las teteras", "las teteras"),
    ("please", "please"), ("note of thanks", "note of thanks"), ("where is it, thanks a lot!", "where is it"),
    ("the kettle please", "the kettle"), ("please show me", "please show me"),
    ("hello, world program", "hello, world program"), ("find command", "find command"), ("", ""),
]  # fmt: skip
OTHER_FORMS = [
    ("k8s cluster", ("kubernetes",)), ("Kubernetes cluster", ("k8s",)),
    ("auth in the DB", ("authentication", "database")), ("open PRs", ("pull requests",)),
    ("pull request", ("PR",)), ("our SLA", ("service level agreement",)), ("row level security", ("RLS",)),
    ("row-level security", ("RLS",)),
]  # fmt: skip
NO_OTHER = (
    "kettle", "iPhone", "the database", "INC-42", "db-main", "auth.users", "pre-auth", "/docs/readme",
    "BillingService", "retry_count", "RAG_LLM_URL",
    "k8s kubernetes", "Mr Smith", "rag doll", "24 hr", "db@example.com", "db=main",
    "v2", "__",
)  # fmt: skip


def test_polite_phrases_are_removed():
    assert [(question, expand(question).text) for question, _ in FRAMED] == FRAMED


def test_other_word_forms_are_searched_too():
    for question, added in OTHER_FORMS:
        assert expand(question) == Expansion(question, f"{question} {' '.join(added)}", added)
    assert [question for question in NO_OTHER if expand(question) != Expansion(question, question, ())] == []


def test_each_abbreviation_has_one_meaning():
    assert len(set(map(str.lower, ABBREVIATIONS))) == len(ABBREVIATIONS) == len(set(ABBREVIATIONS.values()))
    assert not {short.lower() for short in ABBREVIATIONS} & set(ABBREVIATIONS.values())


def test_the_number_of_added_forms_is_limited():
    names = " ".join([*ABBREVIATIONS, "db", "auth", "config", "repo", "infra"])
    assert len(expand(names).additions) == MAX_ADDITIONS


def test_a_long_text_is_truncated_and_stays_within_the_limit():
    expansion = expand("k8s auth " * 3_000)
    assert len(expansion.words) <= MAX_LENGTH
    assert len(expansion.text) <= MAX_LENGTH
