"""serverless.yml agrees with functions/, the settings and docs/deploy.md: time-outs, settings, secrets."""

import re

from functions.server import SLUGS
from local import ROOT
from shared.clients.read_replica import DATABASE_SECONDS
from shared.config import ServerSettings, Settings
from shared.models.chat_gateway import STREAM_SECONDS
from shared.models.reranking import RERANK_SECONDS
from tests.deploy.conftest import CONFIGURATION, SECRETS, Package

# What the container alone reads.
OF_THE_SERVER = {"RAG_FUNCTIONS", "PORT"}
DEFAULTS = Settings.model_construct()


def secrets_of(packaged: Package, slug: str) -> set[str]:
    """The secrets whose value the function gets."""
    return {
        name for name, value in packaged.variables(slug).items() if name in SECRETS and value == f"<{name}>"
    }


def test_every_file_of_functions_is_a_function_with_its_handler(packaged: Package):
    handlers = {slug: entry["Handler"] for slug, entry in packaged.functions.items()}
    assert handlers == {slug: f"{module}.handler" for slug, module in SLUGS.items()}


def test_every_function_runs_on_the_wheels_platform(packaged: Package):
    for entry in packaged.functions.values():
        assert entry["Architectures"] == ["x86_64"]
        assert entry["Runtime"] == "python3.11"


def test_no_function_ends_before_its_own_time_outs(packaged: Package):
    public_keys = 6
    asking = DATABASE_SECONDS
    embedding = DEFAULTS.rag_llm_timeout_seconds / 3
    search = public_keys + asking + embedding + asking + RERANK_SECONDS
    timeouts = {slug: entry["Timeout"] for slug, entry in packaged.functions.items()}
    assert timeouts["rag-search"] > search
    assert timeouts["rag-answer"] > search + DEFAULTS.rag_llm_timeout_seconds
    # A key to exchange, a request to count, and the longest stream.
    chat = search + 2 * asking + STREAM_SECONDS
    assert timeouts["chat-completions"] > chat
    # An API key's exchange, its count, the work.
    assert timeouts["api-keys"] > public_keys + 3 * asking
    assert min(timeouts["health"], timeouts["metrics"]) > asking
    assert max(timeouts.values()) <= 900


def test_every_setting_of_the_functions_is_configurable(packaged: Package):
    settable = set().union(*(packaged.variables(slug) for slug in SLUGS))
    assert {name.upper() for name in Settings.model_fields} - OF_THE_SERVER <= settable
    assert set(ServerSettings.model_fields) >= {name.lower() for name in OF_THE_SERVER}


def test_every_function_that_embeds_gets_the_time_out_of_an_embedding(packaged: Package):
    embedding = [slug for slug in SLUGS if "OPENAI_API_KEY" in secrets_of(packaged, slug)]
    assert {"rag-search", "ingest"} <= {*embedding}
    for slug in embedding:
        assert packaged.variables(slug)["RAG_LLM_TIMEOUT_SECONDS"] == "<RAG_LLM_TIMEOUT_SECONDS>"


def test_health_reads_settings_from_the_same_place_as_the_other_functions(packaged: Package):
    health = packaged.variables("health")
    reported = "RAG_EMBEDDING_MODEL", "RAG_EMBEDDING_URL", "RAG_LLM_MODEL", "RAG_LLM_URL"
    reranker = "RAG_RERANK_ENABLED", "RAG_RERANK_PROVIDER", "RAG_RERANK_MODEL", "RAG_RERANK_URL"
    for name in (*reported, *reranker):
        assert health[name] == packaged.variables("rag-answer")[name] == f"<{name}>"
    # And a placeholder for each key that a function needs.
    for name in ("OPENAI_API_KEY", "RAG_LLM_API_KEY"):
        assert (name in health) == any(name in secrets_of(packaged, slug) for slug in SLUGS)


def test_secrets_come_only_from_the_deployer_s_environment(packaged: Package):
    for slug in SLUGS:
        for name in SECRETS & set(packaged.variables(slug)):
            assert packaged.variables(slug)[name] in (f"<{name}>", "elsewhere")
    # In the text too: nothing is assigned that looks like a key or a token.
    assert not re.findall(r"(sk-|eyJ|-----BEGIN)", CONFIGURATION)


def test_each_function_gets_the_documented_secrets(packaged: Package):
    page = (ROOT / "docs" / "deploy.md").read_text()
    section = page.partition("## Secrets of each function")[2].partition("\n## ")[0]
    head, _, *rows = re.findall(r"^\|(.+)\|$", section, re.MULTILINE)
    fields = {}
    names = [cell.strip().strip("`") for cell in head.split("|")][1:]
    for row in rows:
        slug, *cells = (cell.strip() for cell in row.split("|"))
        fields[slug.strip("`")] = {name for name, cell in zip(names, cells, strict=True) if cell}
    assert fields == {slug: secrets_of(packaged, slug) for slug in SLUGS}


def test_no_function_gets_a_service_role_key(packaged: Package):
    for slug in SLUGS:
        names = packaged.variables(slug).keys() - {"OTEL_SERVICE_NAME"}
        assert not [name for name in names if "SERVICE" in name]
