"""compose.yaml without Docker: its form, settings that exist, secrets where they are needed."""

import os
import re
from typing import Any

import pytest
import yaml

from functions.server import DRAIN_SECONDS
from local import ROOT
from local.shell_environment import OF_OPENTELEMETRY
from shared.config import ServerSettings, Settings, read_server_settings, read_settings
from tests.deploy import conftest

FILE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = FILE["services"]
# Of the compose specification, those that the file uses, with the type of their value.
KEYS: dict[str, type | tuple[type, ...]] = {
    "image": str, "build": str, "restart": str, "read_only": bool, "tmpfs": list, "cap_drop": list,
    "security_opt": list, "extra_hosts": list, "stop_grace_period": str, "mem_limit": str, "ports": list,
    "environment": dict, "healthcheck": dict, "command": list,
}  # fmt: skip
VARIABLE = re.compile(r"\$\{(\w+)(?::([?-])([^}]*))?\}")
SECRETS = conftest.SECRETS | {"RAG_FUNCTIONS_SECRET"}


def test_the_file_has_the_form_of_a_compose_file():
    assert set(FILE) == {"services", "x-hardening", "x-project"}
    assert set(SERVICES) == {"functions", "worker"}
    for name, service in SERVICES.items():
        assert set(service) <= set(KEYS), name
        for key, value in service.items():
            assert isinstance(value, KEYS[key]), (name, key)
        for variable, value in service["environment"].items():
            assert value is None or isinstance(value, str), (name, variable)


def test_every_variable_is_a_setting_and_each_required_one_has_a_message():
    settings = {field.upper() for field in Settings.model_fields | ServerSettings.model_fields}
    settings |= {"OPENAI_BASE_URL", *OF_OPENTELEMETRY}
    required = {field.upper() for field, info in Settings.model_fields.items() if info.is_required()}
    for name, service in SERVICES.items():
        for variable, value in service["environment"].items():
            assert variable in settings, (name, variable)
            used = VARIABLE.findall(value or "")
            assert all(sign == "?" and text for _, sign, text in used), (name, variable)
            assert {other for other, _, _ in used} <= {variable}, name
        assert required <= set(service["environment"]), name
        # Both embed, within a third of it.
        assert "RAG_LLM_TIMEOUT_SECONDS" in service["environment"], name


def test_each_service_has_only_the_secrets_that_it_uses():
    held = {name: SECRETS & set(service["environment"]) for name, service in SERVICES.items()}
    assert held["worker"] == {
        "RAG_FUNCTIONS_SECRET", "OPENAI_API_KEY", "SUPABASE_JWT_SECRET", "RAG_SIGNING_KEY",
        "RAG_TRANSCRIPTION_KEY", "RAG_OTHER_EMBEDDING",
    }  # fmt: skip
    assert held["functions"] == SECRETS - {"RAG_WORKER_TOKEN", "RAG_TRANSCRIPTION_KEY"}


def test_a_service_may_write_nothing_and_gain_no_rights():
    for name, service in SERVICES.items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert ("ports" in service) is (name == "functions"), name
        assert int(service["stop_grace_period"].removesuffix("s")) > DRAIN_SECONDS, name


@pytest.mark.parametrize("name", ["functions", "worker"])
def test_the_functions_accept_these_settings(name: str, monkeypatch: pytest.MonkeyPatch):
    """As compose sets them, with every required variable of the shell."""
    for variable in [
        variable
        for variable in os.environ
        if variable.lower() in Settings.model_fields | ServerSettings.model_fields
    ]:
        monkeypatch.delenv(variable)
    shell = {"SUPABASE_URL": "http://host.docker.internal:54321"}
    for variable, value in SERVICES[name]["environment"].items():
        if value is not None:
            monkeypatch.setenv(
                variable,
                VARIABLE.sub(lambda match: shell.get(match[1], f"{match[1]}-".ljust(40, "x")), value),
            )
    read_settings()
    if name == "functions":
        served = read_server_settings()
        assert (served.port, served.rag_functions) == (8080, ["all"])
    else:
        assert SERVICES[name]["command"] == ["python", "-m", "functions.schedule"]
