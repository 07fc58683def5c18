"""Errors as nouns: what a caller reads by default, and what becomes of what SQL raises."""

import re

from local import ROOT
from shared import errors
from shared.errors import (
    ConfigurationError,
    DatabaseBusy,
    DatabaseFailed,
    DatabaseTimedOut,
    EmbeddingFailed,
    Forbidden,
    InvalidRequest,
    NotFound,
    RagError,
    RateLimited,
    TooManyCalls,
    Unauthorized,
    error_from_sql,
)

NOUNS = sorted(
    (noun for noun in vars(errors).values() if isinstance(noun, type) and issubclass(noun, RagError)),
    key=lambda noun: noun.__name__,
)
LEAK = 'Key (email)=(ann@acme.example) of relation "documents" at rag_match(vector) line 7'


def test_the_docstring_is_the_default_message():
    for noun in NOUNS:
        message = str(noun())
        assert message == (noun.__doc__ or "").strip()
        assert message.endswith(".")
        assert "\n" not in message
        assert str(noun("Another message.")) == "Another message."


def test_every_error_class_has_a_docstring_a_status_and_its_own_code():
    for noun in NOUNS:
        assert vars(noun).get("__doc__")
        assert 400 <= noun.status < 600
        assert re.fullmatch(r"[a-z]+(_[a-z]+)*", noun.code)
        assert [other for other in NOUNS if other.code == noun.code] == [noun]


def test_headers_belong_to_the_error_instance():
    arguments = {"Retry-After": "7"}
    error = RateLimited(headers=arguments)
    arguments["Retry-After"] = "8"
    assert error.headers == {"Retry-After": "7"}
    assert RateLimited().headers == {}
    assert Unauthorized().headers == Unauthorized("Expired.").headers == {"WWW-Authenticate": "Bearer"}
    assert not issubclass(ConfigurationError, RagError), "it is no response"


def test_an_sql_code_becomes_its_error():
    codes: dict[type[RagError], list[str | None]] = {
        NotFound: ["PT404"],
        InvalidRequest: ["PT400", "22P02", "22007", "22000", "23502", "23505", "23514"],
        Unauthorized: ["PGRST301", "PGRST302", "PGRST303"],
        Forbidden: ["42501"],
        DatabaseTimedOut: ["57014"],
        DatabaseBusy: ["55P03", "PT425"],
        DatabaseFailed: [
            "42883", "42P01", "53300", "08006", "XX000", "P0001", "PGRST000", "PGRST202", "PT500", "2", "",
            None,
        ],
    }  # fmt: skip
    for noun, own in codes.items():
        assert [code for code in own if type(error_from_sql(code, LEAK, LEAK)) is not noun] == []


def test_a_message_of_the_project_s_sql_is_passed_on():
    for code in ("PT404", "PT400"):
        message = "top_k must be between 1 and 300"
        assert str(error_from_sql(code, message, "invalid_top_k")) == message
        without = error_from_sql(code, None, None)
        assert str(without) == type(without).__doc__


def test_too_many_calls_of_both_kinds_are_one_error_with_two_codes():
    for code in ("too_many_reads", "too_many_writes"):
        error = error_from_sql("PT429", "Too many.", code)
        assert (type(error), error.code, error.headers) == (TooManyCalls, code, {"Retry-After": "3"})


def test_a_wrong_number_of_dimensions_is_the_deployment_s_own_fault():
    error = error_from_sql("PT400", "query_vector must have 384 dimensions, not 768", "wrong_dimensions")
    assert (type(error), error.log_reason) == (EmbeddingFailed, "wrong_dimensions")
    assert "384" not in str(error)


def test_other_sql_messages_are_hidden_since_they_may_quote_data():
    codes = (
        "22P02", "22007", "23503", "23505", "23514", "42501", "57014", "42883", "XX000", "PGRST301",
        "PGRST202", "P0001", None,
    )  # fmt: skip
    for code in codes:
        error = error_from_sql(code, LEAK, {"row": LEAK})
        text = f"{error} {error!r} {error.headers} {vars(error)}"
        assert not [word for word in re.findall(r"\w{4,}", LEAK) if word in text]


def test_every_code_in_sql_has_its_error_class():
    """A PT code that errors.py does not know would leave as a fault of the database."""
    files = sorted((ROOT / "sql").rglob("*.sql"))
    raised = {code for file in files for code in re.findall(r"errcode = '(\w+)'", file.read_text())}
    assert raised
    for code in raised:
        assert type(error_from_sql(code, "A message.", None)) is not DatabaseFailed, code
