"""Variables of the shell that local commands use: the named ones, and no others."""

import os
import re

from local.errors import CommandError
from shared.config import OTHER_NAMES, Settings

DEMO_MODELS = "RAG_DEMO_MODELS"
# What programs need. No service is configured by these.
SYSTEM = {
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "LD_LIBRARY_PATH",
    "TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "PAGER",
}  # fmt: skip
SYSTEM_PREFIXES = ("LC_", "XDG_", "OPENBLAS_", "OMP_", "MKL_")
# Documented variables that only OpenTelemetry's libraries read.
OF_OPENTELEMETRY = {"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"}
# A stack sets these itself.
_OF_THE_STACK = {"RAG_FUNCTIONS", "RAG_FUNCTIONS_SECRET", "RAG_METRICS_TOKEN", "RAG_WORKER_TOKEN"}
SETTINGS = {
    name
    for name in map(str.upper, Settings.model_fields)
    if name.startswith(("RAG_", "OPENAI_", "OTEL_")) and name not in _OF_THE_STACK
} | {*OTHER_NAMES.values(), *OF_OPENTELEMETRY, "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"}
MODEL_SETTINGS = {
    name for name in SETTINGS if re.match("(OPENAI|RAG_EMBEDDING|RAG_LLM|RAG_RERANK|RERANK|LOVABLE)_", name)
}
# Proxies, and certificate authorities, for requests to the addresses of the settings.
_PROXIES = {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"}
PROXIES = {*_PROXIES, *map(str.lower, _PROXIES), "SSL_CERT_FILE", "SSL_CERT_DIR"}
LOOPBACK = "localhost,127.0.0.1,::1"


def settings_of_the_shell() -> dict[str, str]:
    """The settings of the functions, with the proxies for the services that they name."""
    return {name: os.environ[name] for name in sorted(SETTINGS | PROXIES) if os.environ.get(name)}


def no_proxy_for_loopback() -> dict[str, str]:
    """NO_PROXY of the shell, extended by this machine, for libraries that read it."""
    own = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    # With other entries, urllib does not read * as all hosts.
    hosts = "*" if "*" in own else ",".join(filter(None, (own, LOOPBACK)))
    return {"NO_PROXY": hosts, "no_proxy": hosts}


def keep_only(names: set[str], prefixes: tuple[str, ...] = ()) -> None:
    """Remove all other variables from this process's environment, except those of the system."""
    for name in set(os.environ) - SYSTEM - names:
        if not name.startswith(SYSTEM_PREFIXES + prefixes):
            del os.environ[name]


def isolate_demo() -> bool:
    """Remove the variables that the demo does not use. Returns whether it uses the models that the shell's
    settings name. Raises CommandError."""
    value = os.environ.get(DEMO_MODELS, "")
    if value not in ("", "environment"):
        raise CommandError(
            f"{DEMO_MODELS} has only one value, environment: the models that the settings of the shell name"
        )
    keep_only(
        {"RAG_LOCAL_POSTGREST", "RAG_LOCAL_POSTGRES_USER"} | (MODEL_SETTINGS | PROXIES if value else set())
    )
    if value and not settings_of_the_shell().keys() & {
        "OPENAI_API_KEY",
        "RAG_LLM_API_KEY",
        "LOVABLE_API_KEY",
    }:
        raise CommandError(
            f"{DEMO_MODELS}=environment needs a key: OPENAI_API_KEY (embeddings) or RAG_LLM_API_KEY (answers)"
        )
    return bool(value)
