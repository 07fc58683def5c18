"""Settings from the environment: errors name the variable, and never show a value."""

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
from jose import jwt

from shared.config import (
    OPENAI_URL,
    OTHER_NAMES,
    OtherEmbedding,
    ServerSettings,
    Settings,
    read_server_settings,
    read_settings,
    unknown_settings,
)
from shared.errors import ConfigurationError

REQUIRED = {"SUPABASE_URL": "https://project.supabase.co", "SUPABASE_ANON_KEY": "anon-7f3x"}
KEYS = {
    "SUPABASE_JWT_SECRET": "secret-7f3x",
    "OPENAI_API_KEY": "sk-openai-7f3x",
    "RAG_LLM_API_KEY": "sk-lovable-7f3x",
    "RAG_RERANK_API_KEY": "rerank-7f3x",
}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The required settings and no other, whatever this machine has."""
    for name in Settings.model_fields | ServerSettings.model_fields:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in REQUIRED.items():
        monkeypatch.setenv(name, value)
    return monkeypatch


@contextmanager
def variable(name: str, value: str | None) -> Iterator[None]:
    """The environment with another value of one variable, or without the variable."""
    with pytest.MonkeyPatch.context() as patch:
        if value is None:
            patch.delenv(name)
        else:
            patch.setenv(name, value)
        yield


def fault() -> str:
    with pytest.raises(ConfigurationError) as raised:
        read_settings()
    return str(raised.value)


def test_the_project_s_settings_are_sufficient_and_the_others_have_defaults(environment: pytest.MonkeyPatch):
    # Unknown: ignored.
    environment.setenv("RAG_SOMETHING_ELSE", "1")
    settings = read_settings()
    assert settings.supabase_url == "https://project.supabase.co"
    assert settings.supabase_anon_key.get_secret_value() == "anon-7f3x"
    assert settings.supabase_jwt_secret is None
    assert settings.openai_api_key is None
    assert settings.rag_llm_api_key is None


def test_a_missing_or_empty_key_is_named(subtests: pytest.Subtests):
    for name in REQUIRED:
        for value in (None, ""):
            with subtests.test(name=name, value=value), variable(name, value):
                assert fault() == f"{name}: Field required"


PUBLISHABLE = "SUPABASE_PUBLISHABLE_KEY"
SECRET_KEYS = (
    "sb_secret_hunter2",
    jwt.encode({"iss": "supabase", "role": "service_role", "exp": 2_000_000_000}, "hunter2", "HS256"),
)


def test_the_publishable_key_serves_in_place_of_the_anon_key(environment: pytest.MonkeyPatch):
    def key() -> str:
        return read_settings().supabase_anon_key.get_secret_value()

    environment.setenv(f"{PUBLISHABLE}S", '{"default": "sb_publishable_one", "web": "sb_publishable_two"}')
    assert key() == "sb_publishable_one"
    environment.setenv(PUBLISHABLE, "sb_publishable_three")
    assert key() == "sb_publishable_three"
    environment.delenv(f"{PUBLISHABLE}S")
    environment.delenv("SUPABASE_ANON_KEY")
    assert key() == "sb_publishable_three"
    environment.delenv(PUBLISHABLE)
    for keys in ("hunter2", '["hunter2"]', '{"web": "hunter2"}', '{"default": null}'):
        environment.setenv(f"{PUBLISHABLE}S", keys)
        assert fault() == f'{PUBLISHABLE}S: a JSON object with the entry "default" is required'


def test_a_key_that_row_security_does_not_bind_is_refused(subtests: pytest.Subtests):
    for name, key in [
        *((name, key) for name in ("SUPABASE_ANON_KEY", PUBLISHABLE) for key in SECRET_KEYS),
        (f"{PUBLISHABLE}S", '{"default": "sb_secret_hunter2"}'),
    ]:
        with subtests.test(name=name, key=key), variable(name, key):
            message = fault()
            assert message.startswith("SUPABASE_ANON_KEY: a secret or service_role key")
            assert "hunter2" not in message
            assert key not in message


def test_a_key_that_no_header_can_have_is_refused():
    for key in ("sb_publishable_one\n", "sb_publishable one", "sb_publishable_öne"):
        with variable(PUBLISHABLE, key):
            assert fault().startswith("SUPABASE_ANON_KEY: a key without spaces and line breaks is required")


def test_an_empty_value_counts_as_unset(subtests: pytest.Subtests):
    for name in sorted(set(Settings.model_fields) - {name.lower() for name in REQUIRED}):
        with subtests.test(name=name), variable(name.upper(), ""):
            assert getattr(read_settings(), name) == Settings.model_fields[name].default


MALFORMED = {
    "SUPABASE_URL": [
        "ftp://hunter2", "hunter2.supabase.co", "https:///rest", "https://:443/rest", "http://999.1.1.1",
        "http://[1]/", "http://[::::]/", "http://[127.0.0.1]", "http://::1/",
    ],
    "SUPABASE_JWT_SECRET": [
        "-----BEGIN PUBLIC KEY-----\nhunter2", '{"kty": "EC", "kid": "hunter2"}',
        ' {"keys": [{"kty": "oct", "k": "hunter2"}]}', '[{"kty": "RSA", "kid": "hunter2"}]',
        "ssh-ed25519 hunter2",
    ],
    "RAG_STORAGE_BUCKET": ["hunter2/x", "..hunter2"],
    "RAG_EMBEDDING_URL": ["hunter2"],
    "RAG_OTHER_EMBEDDING": [
        "hunter2", '{"api_key": "hunter2"}', '{"model": "m", "api_key": "hunter2", "dimensions": 99}',
        '{"model": "m", "url": "hunter2"}', '{"model": "m", "key": "hunter2"}',
    ],
    "RAG_LLM_URL": ["hunter2"],
    "RAG_LLM_TIMEOUT_SECONDS": ["0", "hunter2"],
    "RAG_LLM_REASONING_EFFORT": ["hunter2"],
    "RAG_CONTEXT_TOKENS": ["99", "7312.5", "731200"],
    "RAG_CONFIDENCE_HIGH_THRESHOLD": ["1.7312", "hunter2"],
    "RAG_CONFIDENCE_MEDIUM_THRESHOLD": ["-7312", "hunter2"],
    "RAG_RERANK_ENABLED": ["hunter2"],
    "RAG_RERANK_PROVIDER": ["hunter2"],
    "RAG_RERANK_URL": [
        "hunter2", "https://rerank.example:hunter2/v1", "https://rerank.example:73120/v1",
        "https://rerank.example/v1?key=hunter2", "https://rerank.example/v1#hunter2",
        "https://r\u00e9rank.example/v1", "https://rerank.example/\u00e9",
    ],
    "RAG_RATE_LIMIT_RAG": ["hunter2", "7312/hunter2"],
    "RAG_INGEST_BYTES_PER_MINUTE": ["1023", "7312.5", "hunter2"],
    "RAG_SNAPSHOT_URL": ["/x", "x", "gs://", "a::file:///x", "s3://x::a", "S3://x", "://x"],
    "RAG_PUBLIC_URL": ["hunter2.example", "https://hunter2@rag.example"],
    # A denylist that hides nothing by mistake would publish metadata.
    "RAG_METADATA_DENYLISTS": [
        "knowledge", "[]", "7", '{"knowlege": ["a"]}', '{"knowledge": "a"}', '{"knowledge": [1]}',
        '{"knowledge": {}}', '{"knowledge": null}', "[" * 100_000,
    ],
    "RAG_EMBEDDING_ROLES": [
        "query: ", "[]", '{"m": "query: "}', '{"m": {"query": "Q: "}}', '{"m": {"question": 7}}',
        '{"m": {"question": ["Q: "]}}', '{"m": {"question": {"input_type": null}}}',
    ],
}  # fmt: skip


def test_the_medium_threshold_is_not_above_the_high_one(environment: pytest.MonkeyPatch):
    environment.setenv("RAG_CONFIDENCE_HIGH_THRESHOLD", "0.5")
    environment.setenv("RAG_CONFIDENCE_MEDIUM_THRESHOLD", "0.51")
    assert fault() == "RAG_CONFIDENCE_MEDIUM_THRESHOLD: above RAG_CONFIDENCE_HIGH_THRESHOLD"


def test_a_malformed_value_is_named_and_never_shown(subtests: pytest.Subtests):
    for name, value in [(name, value) for name, values in MALFORMED.items() for value in values]:
        with subtests.test(name=name, value=value), variable(name, value):
            message = fault()
            assert message.startswith(f"{name}: ")
            assert "hunter2" not in message
            # A short number is also part of the limits in the message.
            assert len(value) <= 3 or value not in message


def test_an_error_of_a_json_setting_names_the_declared_field_or_its_documentation(subtests: pytest.Subtests):
    whole = "JSON as in docs/configuration.md is required"
    for name, value, message in (
        ("RAG_OTHER_EMBEDDING", '{"api_key": "hunter2"}', "model: Field required"),
        ("RAG_OTHER_EMBEDDING", "hunter2", whole),
        ("RAG_OTHER_EMBEDDING", '["hunter2"]', whole),
        # A key that is not declared may be a secret.
        ("RAG_OTHER_EMBEDDING", '{"model": "m", "hunter2": 1}', "Extra inputs are not permitted"),
        ("RAG_THIRD_PARTY_ISSUERS", '[{"issuer": "https://a.example"}]', "jwks_url: Field required"),
        ("RAG_THIRD_PARTY_ISSUERS", "{}", whole),
        ("RAG_METADATA_DENYLISTS", "[]", whole),
    ):
        with subtests.test(name=name, value=value), variable(name, value):
            assert fault() == f"{name}: {message}"


def test_a_url_may_have_any_host_that_requests_may_have(subtests: pytest.Subtests):
    for address in (
        "http://127.0.0.1", "http://[::1]:8080/v1", "http://1.2.3.4.example", "http://db_1", "http://10",
    ):  # fmt: skip
        with subtests.test(address=address), variable("SUPABASE_URL", f"{address}/"):
            assert read_settings().supabase_url == address, "without the trailing slash"
            httpx.URL(address)


def test_a_rate_is_per_second_minute_hour_or_day(subtests: pytest.Subtests):
    for rate in ("60/minute", "1/second", "10 per hour", "600/day", "5/1minute"):
        with subtests.test(rate=rate), variable("RAG_RATE_LIMIT_RAG", rate):
            assert read_settings().rag_rate_limit_rag == rate
    others = (
        "sixty a minute", "60", "60/", "/minute", "-1/minute", "60/fortnight", "60/month",
        "60 per 2 minutes", "1.5/minute",
        # Of several rates only the first would count.
        "60/minute; 1000/day", "60/minute, 1000/day", "60/minute and more",
    )  # fmt: skip
    for rate in others:
        with subtests.test(rate=rate), variable("RAG_RATE_LIMIT_RAG", rate):
            assert fault().startswith("RAG_RATE_LIMIT_RAG: ")


def test_denied_metadata_is_listed_by_api(environment: pytest.MonkeyPatch):
    assert read_settings().rag_metadata_denylists == {}
    environment.setenv("RAG_METADATA_DENYLISTS", '{"knowledge": ["a", "b"], "memory": []}')
    assert read_settings().rag_metadata_denylists == {"knowledge": {"a", "b"}, "memory": frozenset()}


def test_no_text_of_the_settings_shows_a_secret(environment: pytest.MonkeyPatch):
    for name, value in KEYS.items():
        environment.setenv(name, value)
    settings = read_settings()
    for text in (repr(settings), str(settings), repr(settings.model_dump()), settings.model_dump_json()):
        assert "7f3x" not in text


def test_no_error_shows_a_secret(environment: pytest.MonkeyPatch):
    for name, value in KEYS.items():
        environment.setenv(name, value)
    environment.setenv("SUPABASE_URL", "secret-7f3x.supabase.co")
    environment.setenv("RAG_RATE_LIMIT_RAG", "60/fortnight")
    with pytest.raises(ConfigurationError) as raised:
        read_settings()
    assert "7f3x" not in str(raised.value)
    # A traceback shows a cause, and a context that is not suppressed: both could quote the values.
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__


def test_issuer_and_jwks_url_default_to_the_project_s(environment: pytest.MonkeyPatch):
    settings = read_settings()
    assert settings.issuer == "https://project.supabase.co/auth/v1"
    assert settings.jwks_url == f"{settings.issuer}/.well-known/jwks.json"
    environment.setenv("SUPABASE_JWT_ISSUER", "https://login.example")
    assert read_settings().issuer == "https://login.example"


def test_the_secret_may_be_any_text_except_a_key(subtests: pytest.Subtests):
    for secret in ("a plain secret", "c2VjcmV0Lw==", "12345678", '"quoted"', "{", "["):
        with subtests.test(secret=secret), variable("SUPABASE_JWT_SECRET", secret):
            setting = read_settings().supabase_jwt_secret
            assert setting is not None
            assert setting.get_secret_value() == secret


def test_origins_are_separated_by_commas_and_need_no_configured_project(
    subtests: pytest.Subtests, environment: pytest.MonkeyPatch
):
    for name in REQUIRED:
        environment.delenv(name)
    assert read_server_settings().rag_cors_origins == ["*"]
    values = {
        "*": ["*"],
        "https://a.example": ["https://a.example"],
        " https://a.example , https://b.example,": ["https://a.example", "https://b.example"],
    }
    for value, origins in values.items():
        with subtests.test(value=value), variable("RAG_CORS_ORIGINS", value):
            assert read_server_settings().rag_cors_origins == origins


def test_a_setting_may_have_the_name_of_a_contract(environment: pytest.MonkeyPatch):
    environment.setenv("LOVABLE_API_KEY", "sk-lovable")
    environment.setenv("RERANK_PROVIDER", "cohere")
    environment.setenv("RAG_RERANK_PROVIDER", "jina")
    settings = read_settings()
    assert settings.rag_llm_api_key is not None
    assert settings.rag_llm_api_key.get_secret_value() == "sk-lovable"
    assert settings.rag_rerank_provider == "jina"


def test_the_base_url_of_openai_s_client_is_the_endpoint_of_its_key(environment: pytest.MonkeyPatch):
    environment.setenv("OPENAI_BASE_URL", "https://models.example/v1/")
    environment.delenv("OPENAI_API_KEY", raising=False)
    assert read_settings().rag_embedding_url == OPENAI_URL
    environment.setenv("OPENAI_API_KEY", "sk-any")
    settings = read_settings()
    assert settings.rag_embedding_url == "https://models.example/v1"
    # They have keys of their own.
    assert OtherEmbedding(model="m").url == settings.rag_transcription_url == OPENAI_URL


def test_every_other_name_belongs_to_no_setting():
    assert set(OTHER_NAMES) <= {name.upper() for name in Settings.model_fields}
    assert not set(OTHER_NAMES.values()) & {name.upper() for name in Settings.model_fields}


def test_the_roles_of_embeddings_are_a_prefix_or_parameters_by_model(environment: pytest.MonkeyPatch):
    value = '{"m": {"question": "Q: ", "document": {"input_type": "passage", "truncate": true}}, "n": {}}'
    environment.setenv("RAG_EMBEDDING_ROLES", value)
    roles = read_settings().rag_embedding_roles
    assert (roles["m"].question, roles["m"].document) == ("Q: ", {"input_type": "passage", "truncate": True})
    assert (roles["n"].question, roles["n"].document) == ("", "")


def test_a_name_that_no_setting_has_is_reported_with_the_nearest_one():
    names = (
        "RAG_LLM_TIMEOUT_SECOND", "RAG_OPENAI_API_KEY", "RAG_ZZZ", "RAG_LLM_URL", "RAG_FUNCTIONS", "PORTS",
    )  # fmt: skip
    assert unknown_settings(dict.fromkeys(names, "secret-7f3x")) == [
        "RAG_LLM_TIMEOUT_SECOND (perhaps RAG_LLM_TIMEOUT_SECONDS)",
        "RAG_OPENAI_API_KEY (perhaps OPENAI_API_KEY)",
        "RAG_ZZZ",
    ]
