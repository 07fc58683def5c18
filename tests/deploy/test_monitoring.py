"""Alert rules, dashboard and runbook against promtool, each other, and what the endpoint really serves."""

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from functions import metrics
from local import ROOT
from shared.config import Settings
from tests.actors import hit_arguments
from tests.conftest import People
from tests.external_programs import completed
from tests.functions.app_server import client_of, services_with

FOLDER = ROOT / "deploy" / "monitoring"
RULES: list[dict[str, Any]] = yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"][0]["rules"]
TESTS = yaml.safe_load((FOLDER / "alerts.test.yml").read_text())["tests"]
DASHBOARD = json.loads((FOLDER / "dashboard.json").read_text())
RUNBOOK = (ROOT / "docs" / "runbook.md").read_text()
EXPRESSIONS = [rule["expr"] for rule in RULES] + [
    target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]
]
TOKEN = "a token of the operator's"
# Prometheus' own.
UP = "up"


def promtool(*arguments: str) -> str:
    """CI must have it; a laptop without it skips, and says so."""
    program = shutil.which("promtool")
    if program is None:
        assert "CI" not in os.environ, "promtool is missing: install the package prometheus"
        pytest.skip("no promtool: install the package prometheus")
    process = completed([program, *arguments], cwd=FOLDER)
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


def anchors(page: str) -> set[str]:
    """As MkDocs and GitHub make them of headings of one word."""
    return {heading.lower() for heading in re.findall(r"^#+ (\w+)$", page, re.MULTILINE)}


def selectors(expression: str) -> list[tuple[str, set[str]]]:
    """The metrics of an expression, and the labels that their selectors name."""
    ungrouped = re.sub(r"by \([^)]*\)", "", expression)
    selectors = re.findall(r"\b(up|(?:rag|db|gen_ai|gateway)_\w+)\b(?:\{([^}]*)\})?(?=[\[\s)]|$)", ungrouped)
    return [(name, set(re.findall(r"(\w+)\s*[=!]~?", labels))) for name, labels in selectors if name != "up"]


@pytest.fixture
def exposed(settings: Settings, people: People) -> dict[str, set[str]]:
    """The labels of every sample that the endpoint serves after a request."""
    people.ann.rpc("rag_check_rate_limit", hit_arguments())
    with (
        services_with(settings, rag_metrics_token=TOKEN) as operated,
        client_of(metrics.app, operated) as client,
    ):
        text = client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"}).text
    families = text_string_to_metric_families(text)
    return {sample.name: set(sample.labels) for family in families for sample in family.samples}


def test_promtool_accepts_rules_and_configuration():
    assert f"{len(RULES)} rules found" in promtool("check", "rules", "alerts.yml")
    promtool("check", "config", "--syntax-only", "prometheus.yml")


def test_every_alert_fires_in_its_tests():
    assert "SUCCESS" in promtool("test", "rules", "alerts.test.yml")
    fired = {case["alertname"] for test in TESTS for case in test["alert_rule_test"] if case["exp_alerts"]}
    assert fired == {rule["alert"] for rule in RULES}


def test_every_expression_of_the_dashboard_is_valid(tmp_path: Path):
    # Prometheus has no variables.
    expressions = [
        expression.replace("$__rate_interval", "5m").replace("$function", ".*") for expression in EXPRESSIONS
    ]
    rules = [{"record": f"panel:{number}", "expr": each} for number, each in enumerate(expressions)]
    file = tmp_path / "panels.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    promtool("check", "rules", str(file))


def test_every_metric_and_label_of_an_expression_is_exposed(exposed: dict[str, set[str]]):
    assert len([each for expression in EXPRESSIONS for each in selectors(expression)]) >= len(EXPRESSIONS)
    for expression in EXPRESSIONS:
        grouped = {
            label.strip() for group in re.findall(r"by \(([^)]*)\)", expression) for label in group.split(",")
        }
        for name, labels in selectors(expression):
            assert name in exposed, name
            assert labels | grouped <= exposed[name], (name, labels | grouped)


def test_every_metric_of_requests_is_on_the_dashboard(exposed: dict[str, set[str]]):
    shown = {name for expression in EXPRESSIONS for name, _ in selectors(expression)}
    families = {re.sub(r"_(bucket|count|sum)$", "", name) for name in exposed}
    own = {
        name for name in families if not re.match(r"gateway_|rag_\w+_(requests_total|latency_seconds)", name)
    }
    assert own == {re.sub(r"_(bucket|count|sum)$", "", name) for name in shown}


def test_every_alert_has_a_section_of_the_runbook_and_no_section_is_left():
    alerts = {rule["alert"] for rule in RULES}
    for rule in RULES:
        page, _, anchor = rule["annotations"]["runbook"].partition("#")
        assert (page, anchor) == ("docs/runbook.md", rule["alert"].lower())
    prometheus = RUNBOOK.partition("## Alarms of CloudWatch")[0]
    assert set(re.findall(r"^### (\w+)$", prometheus, re.MULTILINE)) == alerts
    assert {alert.lower() for alert in alerts} <= anchors(RUNBOOK)
