"""template.yaml: generated from serverless.yml, correct for cfn-lint, and with no more rights than needed."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from functions.server import SLUGS
from local import ROOT, lambda_package, sam_template
from local.sam_template import SECRETS, STREAMING, logical_id

TEMPLATE: dict[str, Any] = yaml.safe_load((ROOT / "template.yaml").read_text())
RESOURCES: dict[str, dict[str, Any]] = TEMPLATE["Resources"]
CONFIGURATION = yaml.safe_load((ROOT / "serverless.yml").read_text())
RUNBOOK = (ROOT / "docs" / "runbook.md").read_text()

every_function = pytest.mark.parametrize("slug", SLUGS)


def of_type(kind: str) -> dict[str, dict[str, Any]]:
    return {name: entry["Properties"] for name, entry in RESOURCES.items() if entry["Type"] == kind}


def function(slug: str) -> dict[str, Any]:
    properties: dict[str, Any] = RESOURCES[logical_id(slug)]["Properties"]
    return properties


def variables(slug: str) -> dict[str, Any]:
    own = function(slug)["Environment"]["Variables"]
    return {**TEMPLATE["Globals"]["Function"]["Environment"]["Variables"], **own}


def test_the_template_is_generated_from_serverless_yml():
    assert (ROOT / "template.yaml").read_text() == sam_template.rendered()


@pytest.mark.long
def test_cfn_lint_accepts_it():
    program = Path(sys.executable).with_name("cfn-lint")
    command = [str(program), "--regions", "eu-central-1", "--", str(ROOT / "template.yaml")]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (process.returncode, process.stdout) == (0, ""), process.stdout + process.stderr


@every_function
def test_functions_and_routes_are_those_of_serverless_yml(slug: str):
    entry, properties = CONFIGURATION["functions"][slug], function(slug)
    assert properties["Handler"] == entry["handler"]
    assert properties["Runtime"] == CONFIGURATION["provider"]["runtime"]
    assert properties["Timeout"] == entry["timeout"]
    assert properties["MemorySize"] == entry.get("memorySize", CONFIGURATION["provider"]["memorySize"])
    routes = {
        f"{event['Properties']['Method'].upper()} {event['Properties']['Path']}"
        for event in properties["Events"].values()
        if event["Type"] == "HttpApi"
    }
    assert routes == {event["httpApi"] for event in entry["events"] if "httpApi" in event}
    assert set(variables(slug)) == {*CONFIGURATION["provider"]["environment"], *entry["environment"]}


def test_only_functions_that_parse_files_carry_the_parsers():
    carrying = {slug for slug in SLUGS if function(slug)["CodeUri"] == "build/lambda/"}
    assert carrying == {slug for slug, entry in CONFIGURATION["functions"].items() if "package" in entry}
    assert "ingest" in carrying
    without_parsers = f"build/lambda{lambda_package.SUFFIX_WITHOUT_PARSERS}/"
    assert {function(slug)["CodeUri"] for slug in {*SLUGS} - carrying} == {without_parsers}


@every_function
def test_secrets_come_from_secrets_manager_alone(slug: str):
    for name, value in variables(slug).items():
        text = json.dumps(value)
        if name in SECRETS and value != "elsewhere":
            assert f"{{{{resolve:secretsmanager:${{SecretPrefix}}/{name}}}}}" in text
        else:
            assert "secretsmanager" not in text
    assert not SECRETS & {name for name in TEMPLATE["Parameters"] if not name.startswith("With")}


@every_function
def test_a_role_writes_its_function_s_log_and_nothing_else(slug: str):
    name = logical_id(slug)
    assert function(slug)["Role"] == {"Fn::GetAtt": [f"{name}Role", "Arn"]}
    (policy,) = RESOURCES[f"{name}Role"]["Properties"]["Policies"]
    allowed = {
        (action, json.dumps(statement["Resource"]))
        for statement in policy["PolicyDocument"]["Statement"]
        for action in statement["Action"]
    }
    log = json.dumps({"Fn::GetAtt": [f"{name}Log", "Arn"]})
    expected = {("logs:CreateLogStream", log), ("logs:PutLogEvents", log)}
    if slug == "ingest":
        expected.add(("sqs:SendMessage", json.dumps({"Fn::GetAtt": ["IngestDeadLetters", "Arn"]})))
    assert allowed == expected
    assert "ManagedPolicyArns" not in RESOURCES[f"{name}Role"]["Properties"]


def test_no_statement_allows_every_action_or_resource():
    for role in of_type("AWS::IAM::Role").values():
        assert "*" not in re.sub(r"\$\{\w+\}", "", json.dumps(role["Policies"]))


@every_function
def test_every_function_has_reserved_concurrency_and_alarms(slug: str):
    name = logical_id(slug)
    assert function(slug)["ReservedConcurrentExecutions"]
    for alarm, metric in ((f"{name}Errors", "Errors"), (f"{name}Throttles", "Throttles")):
        properties = RESOURCES[alarm]["Properties"]
        assert properties["MetricName"] == metric
        assert properties["Dimensions"] == [{"Name": "FunctionName", "Value": {"Ref": name}}]


def test_a_failed_call_of_the_worker_becomes_a_dead_letter_with_an_alarm():
    ended = function("ingest")["EventInvokeConfig"]
    queue = {"Fn::GetAtt": ["IngestDeadLetters", "Arn"]}
    assert ended["DestinationConfig"]["OnFailure"] == {"Type": "SQS", "Destination": queue}
    waiting = RESOURCES["IngestDeadLettersWaiting"]["Properties"]["Dimensions"]
    assert waiting == [{"Name": "QueueName", "Value": {"Fn::GetAtt": ["IngestDeadLetters", "QueueName"]}}]


def test_every_alarm_is_sent_and_has_a_section_of_the_runbook():
    section = RUNBOOK.partition("## Alarms of CloudWatch")[2]
    headings = {heading.lower() for heading in re.findall(r"^### (\w+)$", section, re.MULTILINE)}
    named = set()
    for alarm in of_type("AWS::CloudWatch::Alarm").values():
        assert alarm["AlarmActions"] == [{"Ref": "AlarmTopic"}]
        (anchor,) = re.findall(r"docs/runbook\.md#(\w+)$", alarm["AlarmDescription"])
        named.add(anchor)
    assert named == headings


def test_streams_are_served_by_a_url_of_the_container_with_the_adapter():
    streams = RESOURCES["Streams"]
    assert streams["Condition"] == "HasStreamImage"
    properties = streams["Properties"]
    assert properties["FunctionUrlConfig"] == {"AuthType": "NONE", "InvokeMode": "RESPONSE_STREAM"}
    environment = properties["Environment"]["Variables"]
    assert environment["AWS_LWA_INVOKE_MODE"] == "response_stream"
    assert set(environment["RAG_FUNCTIONS"].split(",")) == set(STREAMING)
    for slug in STREAMING:
        assert CONFIGURATION["functions"][slug]["environment"].keys() <= environment.keys()
        assert properties["Timeout"] >= CONFIGURATION["functions"][slug]["timeout"]


def test_resources_are_within_cloudformation_s_limit():
    """Each route is also a permission, and each function URL a resource."""
    routes = sum(len(function(slug)["Events"]) for slug in SLUGS)
    assert len(RESOURCES) + routes + 10 <= 500
    assert len(TEMPLATE["Parameters"]) <= 200
