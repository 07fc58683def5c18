"""Roles, alarms, dead letters, concurrency, secrets and the streaming container that `osls package` makes."""

import json
import re
from typing import Any

from functions.server import SLUGS
from local import ROOT
from tests.deploy.conftest import OPTIONS, REFERENCES, Package, Template

STREAMING = {"chat", "chat-completions", "v1-answer"}
DEAD_LETTERS = {"Fn::GetAtt": ["IngestDeadLetters", "Arn"]}


def function_ids(template: Template) -> dict[str, str]:
    """Slugs of the functions, by their names in the template."""
    return {
        name: entry["Properties"]["FunctionName"].removeprefix("rag-dev-")
        for name, entry in template.resources.items()
        if entry["Type"] == "AWS::Lambda::Function" and "FunctionName" in entry["Properties"]
    }


def log_of(template: Template, reference: dict[str, list[str]]) -> str:
    """The name of the log group whose ARN it is."""
    name, attribute = reference["Fn::GetAtt"]
    assert attribute == "Arn"
    return str(template.resources[name]["Properties"]["LogGroupName"])


def allowed(template: Template, function: dict[str, Any]) -> dict[str, Any]:
    """What the function's role may do: actions, and on which resource."""
    role = template.resources[function["Role"]["Fn::GetAtt"][0]]["Properties"]
    assert "ManagedPolicyArns" not in role
    (policy,) = role["Policies"]
    statements = policy["PolicyDocument"]["Statement"]
    return {action: statement["Resource"] for statement in statements for action in statement["Action"]}


def test_a_role_writes_its_function_s_log_and_nothing_else(packaged: Package):
    roles = {slug: entry["Role"]["Fn::GetAtt"][0] for slug, entry in packaged.functions.items()}
    assert len(set(roles.values())) == len(packaged.of_type("AWS::IAM::Role")) == len(SLUGS)
    wrong = {}
    for slug, entry in packaged.functions.items():
        rights = allowed(packaged, entry)
        others = {"sqs:SendMessage": DEAD_LETTERS} if slug == "ingest" else {}
        actions = {"logs:CreateLogStream", "logs:PutLogEvents"}
        logs = {log_of(packaged, rights[action]) for action in actions & set(rights)}
        if set(rights) != actions | set(others) or not others.items() <= rights.items():
            wrong[slug] = rights
        if logs != {f"/aws/lambda/{entry['FunctionName']}"}:
            wrong[slug] = rights
    assert wrong == {}


def test_every_function_has_alarms(packaged: Package):
    alarms = {
        (alarm["MetricName"], json.dumps(alarm["Dimensions"]))
        for alarm in packaged.of_type("AWS::CloudWatch::Alarm")
        if alarm["Namespace"] == "AWS/Lambda"
    }
    assert alarms == {
        (metric, json.dumps([{"Name": "FunctionName", "Value": {"Ref": name}}]))
        for name in function_ids(packaged)
        for metric in ("Errors", "Throttles")
    }


def test_every_alarm_is_sent_and_has_a_section_of_the_runbook(packaged: Package):
    section = (ROOT / "docs" / "runbook.md").read_text().partition("## Alarms of CloudWatch")[2]
    headings = {heading.lower() for heading in re.findall(r"^### (\w+)$", section, re.MULTILINE)}
    named = set()
    for alarm in packaged.of_type("AWS::CloudWatch::Alarm"):
        assert alarm["AlarmActions"] == alarm["OKActions"] == [{"Ref": "AlarmTopic"}]
        (anchor,) = re.findall(r"docs/runbook\.md#(\w+)$", alarm["AlarmDescription"])
        named.add(anchor)
    assert named == headings


def test_alarms_are_sent_to_an_address_on_request(packaged: Package, packaged_with_options: Template):
    for template, email in ((packaged, ""), (packaged_with_options, OPTIONS["alarm-email"])):
        subscription = template.resources["AlarmSubscription"]
        assert subscription["Condition"] == "HasAlarmEmail"
        assert subscription["Properties"]["Endpoint"] == email
        condition = json.loads(template.text)["Conditions"]["HasAlarmEmail"]
        assert condition == {"Fn::Not": [{"Fn::Equals": [email, ""]}]}


def test_a_failed_call_of_the_worker_becomes_a_dead_letter_with_an_alarm(packaged: Package):
    (ended,) = packaged.of_type("AWS::Lambda::EventInvokeConfig")
    assert function_ids(packaged)[ended["FunctionName"]["Ref"]] == "ingest"
    assert ended["DestinationConfig"] == {"OnFailure": {"Destination": DEAD_LETTERS}}
    assert (ended["MaximumRetryAttempts"], ended["MaximumEventAgeInSeconds"]) == (0, 60)
    waiting = packaged.resources["IngestDeadLettersWaiting"]["Properties"]["Dimensions"]
    assert waiting == [{"Name": "QueueName", "Value": {"Fn::GetAtt": ["IngestDeadLetters", "QueueName"]}}]


def test_every_function_reserves_concurrency_unless_it_is_zero(
    packaged: Package, packaged_with_options: Template
):
    few = {"ingest": 2, "index-snapshots": 2, "metrics": 1, "indexes": 5}
    for template, number in ((packaged, "20"), (packaged_with_options, OPTIONS["function-concurrency"])):
        reserved = {slug: entry["ReservedConcurrentExecutions"] for slug, entry in template.functions.items()}
        assert reserved == {
            slug: {"Fn::If": ["ReservesConcurrency", few.get(slug, number), {"Ref": "AWS::NoValue"}]}
            for slug in SLUGS
        }
        condition = json.loads(template.text)["Conditions"]["ReservesConcurrency"]
        assert condition == {"Fn::Not": [{"Fn::Equals": [number, "0"]}]}


def test_a_reference_to_secrets_manager_reaches_cloudformation_unchanged(packaged_with_options: Template):
    secrets = {
        name: value
        for slug in SLUGS
        for name, value in packaged_with_options.variables(slug).items()
        if name in REFERENCES and value != "elsewhere"
    }
    assert secrets == REFERENCES


def test_functions_have_urls_only_on_request(packaged: Package, packaged_with_options: Template):
    assert packaged.of_type("AWS::Lambda::Url") == []
    urls = packaged_with_options.of_type("AWS::Lambda::Url")
    names = {url["TargetFunctionArn"]["Fn::GetAtt"][0] for url in urls}
    assert names == {*function_ids(packaged_with_options), "Streams"}
    for url in urls:
        # The functions check tokens and answer preflights themselves.
        assert url["AuthType"] == "NONE"
        assert "Cors" not in url


def test_streams_are_served_on_request_by_a_url_of_the_container(
    packaged: Package, packaged_with_options: Template
):
    assert "Streams" not in packaged.resources
    template = packaged_with_options
    streams = template.resources["Streams"]["Properties"]
    assert streams["Code"] == {"ImageUri": OPTIONS["stream-image"]}
    assert template.resources["StreamsUrl"]["Properties"]["InvokeMode"] == "RESPONSE_STREAM"
    assert {
        entry["Action"]
        for entry in template.of_type("AWS::Lambda::Permission")
        if entry["FunctionName"] == {"Ref": "Streams"} and entry["Principal"] == "*"
    } == {"lambda:InvokeFunctionUrl", "lambda:InvokeFunction"}
    variables = streams["Environment"]["Variables"]
    assert variables["AWS_LWA_INVOKE_MODE"] == "response_stream"
    assert set(variables["RAG_FUNCTIONS"].split(",")) == STREAMING
    for slug in STREAMING:
        assert template.variables(slug).items() <= variables.items()
        assert streams["Timeout"] >= template.functions[slug]["Timeout"]
    assert None not in variables.values()
    log = {"Fn::GetAtt": ["StreamsLogGroup", "Arn"]}
    assert allowed(template, streams) == {"logs:CreateLogStream": log, "logs:PutLogEvents": log}
    assert {"StreamsErrors", "StreamsThrottles"} <= set(template.resources)


def test_the_template_is_within_cloudformation_s_limit(packaged_with_options: Template):
    assert len(packaged_with_options.resources) <= 500
