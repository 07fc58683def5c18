"""Generator of template.yaml, the AWS SAM template, from serverless.yml.

`python -m local.sam_template`. serverless.yml states functions, routes, time-outs, memory and variables. This
module adds secrets from Secrets Manager, a role for each function that may write its own log and nothing
else, reserved concurrency, dead letters of the worker, alarms, and a container that streams.
"""

import re
from pathlib import Path
from typing import Any

import yaml

from local import ROOT
from local.lambda_package import SUFFIX_WITHOUT_PARSERS

TARGET = ROOT / "template.yaml"
HEAD = """\
# Generated from serverless.yml by `python -m local.sam_template`; docs/deploy.md describes the deployment.
# Secrets: one secret with a plain text in Secrets Manager for each, named `<SecretPrefix>/<variable>`.
"""
# Values of these variables come from Secrets Manager.
SECRETS = {
    "RAG_FUNCTIONS_SECRET", "OPENAI_API_KEY", "RAG_LLM_API_KEY", "SUPABASE_JWT_SECRET", "RAG_SIGNING_KEY",
    "RAG_METRICS_TOKEN", "RAG_RERANK_API_KEY", "RAG_WORKER_TOKEN", "RAG_TRANSCRIPTION_KEY",
    "RAG_OTHER_EMBEDDING_API_KEY",
}  # fmt: skip
# Concurrent executions of functions that use much of the database; the others have the parameter's number.
CONCURRENCY = {"ingest": 2, "index-snapshots": 2, "metrics": 1, "indexes": 5}
# Functions whose answers may stream. A function URL of their container does; API Gateway does not.
STREAMING = ("chat", "chat-completions", "v1-answer")
VARIABLE = re.compile(r"\$\{env:(\w+)(?:, (.+))?\}")
ASSUME = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
    ],
}
Resource = dict[str, Any]


def logical_id(name: str) -> str:
    """`rag-search` is RagSearch, and `OPENAI_API_KEY` OpenaiApiKey."""
    return "".join(part.capitalize() for part in re.split(r"[-_]", name))


class _Variables:
    """The values of environment variables, and the parameters and conditions that they need."""

    def __init__(self) -> None:
        self.parameters: dict[str, Resource] = {}
        self.conditions: dict[str, Any] = {}

    def value(self, name: str, text: str) -> Any:
        match = VARIABLE.fullmatch(text)
        if match is None:
            return text
        variable, default = match[1], match[2]
        if variable in SECRETS:
            return self._secret(variable, is_optional=default == "null")
        parameter: Resource = {"Type": "String"}
        if default is not None:
            # The functions treat an empty variable as unset.
            parameter["Default"] = "" if default == "null" else default.strip("'")
        self.parameters[logical_id(variable)] = parameter
        return {"Ref": logical_id(variable)}

    def _secret(self, variable: str, *, is_optional: bool) -> Any:
        reference = {"Fn::Sub": f"{{{{resolve:secretsmanager:${{SecretPrefix}}/{variable}}}}}"}
        if not is_optional:
            return reference
        name = f"With{logical_id(variable)}"
        self.parameters[name] = {
            "Type": "String",
            "AllowedValues": ["true", "false"],
            "Default": "false",
            "Description": f"Whether Secrets Manager has {variable}",
        }
        self.conditions[name] = {"Fn::Equals": [{"Ref": name}, "true"]}
        return {"Fn::If": [name, reference, {"Ref": "AWS::NoValue"}]}


def _role(log_group: str, *, sends_to: str | None = None) -> Resource:
    statements = [
        {
            "Effect": "Allow",
            "Action": ["logs:CreateLogStream", "logs:PutLogEvents"],
            "Resource": {"Fn::GetAtt": [log_group, "Arn"]},
        }
    ]
    if sends_to:
        queue = {"Fn::GetAtt": [sends_to, "Arn"]}
        statements.append({"Effect": "Allow", "Action": ["sqs:SendMessage"], "Resource": queue})
    policy = {"Version": "2012-10-17", "Statement": statements}
    return {
        "Type": "AWS::IAM::Role",
        "Properties": {
            "AssumeRolePolicyDocument": ASSUME,
            "Policies": [{"PolicyName": "own-log", "PolicyDocument": policy}],
        },
    }


def _alarm(anchor: str, what: str, metric: Resource, threshold: int, periods: int) -> Resource:
    """An alarm on the sum of a metric in five minutes. Its description names the section of the runbook."""
    return {
        "Type": "AWS::CloudWatch::Alarm",
        "Properties": {
            "AlarmDescription": f"{what} docs/runbook.md#{anchor}",
            **metric,
            "Statistic": "Sum",
            "Period": 300,
            "EvaluationPeriods": periods,
            "Threshold": threshold,
            "ComparisonOperator": "GreaterThanOrEqualToThreshold",
            "TreatMissingData": "notBreaching",
            "AlarmActions": [{"Ref": "AlarmTopic"}],
            "OKActions": [{"Ref": "AlarmTopic"}],
        },
    }


def _metric(namespace: str, name: str, dimension: str, value: Any) -> Resource:
    dimensions = [{"Name": dimension, "Value": value}]
    return {"Namespace": namespace, "MetricName": name, "Dimensions": dimensions}


def _events(entries: list[dict[str, str]]) -> Resource:
    events: Resource = {}
    for entry in entries:
        if rate := entry.get("schedule"):
            events["Schedule"] = {"Type": "Schedule", "Properties": {"Schedule": rate}}
            continue
        method, path = entry["httpApi"].split(" ")
        events[f"Route{len(events)}"] = {
            "Type": "HttpApi",
            "Properties": {"ApiId": {"Ref": "Api"}, "Method": method.lower(), "Path": path},
        }
    return events


def _parts(slug: str, entry: Resource, variables: Resource, provider: Resource) -> Resource:
    """A function with its log, its role and its alarms."""
    name = logical_id(slug)
    is_worker = slug == "ingest"
    function: Resource = {
        # In serverless.yml only functions that parse files have a package of their own.
        "CodeUri": f"build/lambda{'' if 'package' in entry else SUFFIX_WITHOUT_PARSERS}/",
        "Runtime": provider["runtime"],
        "Handler": entry["handler"],
        "Timeout": entry["timeout"],
        "MemorySize": entry.get("memorySize", provider["memorySize"]),
        "Role": {"Fn::GetAtt": [f"{name}Role", "Arn"]},
        "LoggingConfig": {"LogGroup": {"Ref": f"{name}Log"}},
        "ReservedConcurrentExecutions": CONCURRENCY.get(slug, {"Ref": "FunctionConcurrency"}),
        "Environment": {"Variables": variables},
        "Events": _events(entry["events"]),
    }
    if is_worker:
        # The schedule calls again in a minute.
        queue = {"Type": "SQS", "Destination": {"Fn::GetAtt": ["IngestDeadLetters", "Arn"]}}
        function["EventInvokeConfig"] = {
            "MaximumEventAgeInSeconds": 60,
            "MaximumRetryAttempts": 0,
            "DestinationConfig": {"OnFailure": queue},
        }
    return {
        name: {"Type": "AWS::Serverless::Function", "Properties": function},
        **_operation(name, slug, is_worker=is_worker),
    }


def _operation(name: str, what: str, *, is_worker: bool = False) -> Resource:
    """Log, role and alarms of a function."""
    errors = _metric("AWS/Lambda", "Errors", "FunctionName", {"Ref": name})
    throttles = _metric("AWS/Lambda", "Throttles", "FunctionName", {"Ref": name})
    return {
        f"{name}Log": {"Type": "AWS::Logs::LogGroup", "Properties": {"RetentionInDays": 30}},
        f"{name}Role": _role(f"{name}Log", sends_to="IngestDeadLetters" if is_worker else None),
        f"{name}Errors": _alarm("lambdaerrors", f"{what} ended without a response.", errors, 3, 1),
        f"{name}Throttles": _alarm("lambdathrottles", f"{what} refused requests.", throttles, 1, 2),
    }


def _shared() -> Resource:
    """The HTTP API, the worker's dead letters, and where alarms go."""
    api_errors = _metric("AWS/ApiGateway", "5xx", "ApiId", {"Ref": "Api"})
    letters = {"Fn::GetAtt": ["IngestDeadLetters", "QueueName"]}
    waiting = _metric("AWS/SQS", "ApproximateNumberOfMessagesVisible", "QueueName", letters)
    return {
        "Api": {"Type": "AWS::Serverless::HttpApi", "Properties": {"FailOnWarnings": True}},
        "ApiErrors": _alarm("apierrors", "API Gateway answered with 5xx.", api_errors, 10, 1),
        "IngestDeadLetters": {
            "Type": "AWS::SQS::Queue",
            "Properties": {"MessageRetentionPeriod": 1_209_600, "SqsManagedSseEnabled": True},
        },
        "IngestDeadLettersWaiting": _alarm("ingestdeadletters", "Calls of the worker failed.", waiting, 1, 1),
        "AlarmTopic": {"Type": "AWS::SNS::Topic"},
        "AlarmSubscription": {
            "Type": "AWS::SNS::Subscription",
            "Condition": "HasAlarmEmail",
            "Properties": {
                "TopicArn": {"Ref": "AlarmTopic"},
                "Protocol": "email",
                "Endpoint": {"Ref": "AlarmEmail"},
            },
        },
    }


def _streaming(configuration: Resource, variables: dict[str, Resource]) -> Resource:
    """The container with the Lambda Web Adapter (Dockerfile, target lambda), which streams by its URL."""
    functions = configuration["functions"]
    merged = {name: value for slug in STREAMING for name, value in variables[slug].items()}
    function = {
        "PackageType": "Image",
        "ImageUri": {"Ref": "StreamImageUri"},
        "Timeout": max(functions[slug]["timeout"] for slug in STREAMING),
        "MemorySize": configuration["provider"]["memorySize"],
        "Role": {"Fn::GetAtt": ["StreamsRole", "Arn"]},
        "LoggingConfig": {"LogGroup": {"Ref": "StreamsLog"}},
        "ReservedConcurrentExecutions": {"Ref": "FunctionConcurrency"},
        "Environment": {
            "Variables": {
                **merged,
                "RAG_FUNCTIONS": ",".join(STREAMING),
                "AWS_LWA_INVOKE_MODE": "response_stream",
                "AWS_LWA_PORT": "8080",
                "AWS_LWA_READINESS_CHECK_PATH": "/health",
            }
        },
        "FunctionUrlConfig": {"AuthType": "NONE", "InvokeMode": "RESPONSE_STREAM"},
    }
    parts = {
        "Streams": {"Type": "AWS::Serverless::Function", "Properties": function},
        **_operation("Streams", "The streaming container"),
    }
    return {name: {"Condition": "HasStreamImage", **part} for name, part in parts.items()}


def template() -> Resource:
    configuration: Resource = yaml.safe_load((ROOT / "serverless.yml").read_text())
    provider = configuration["provider"]
    values = _Variables()
    shared = {name: values.value(name, text) for name, text in provider["environment"].items()}
    variables = {
        slug: {name: values.value(name, text) for name, text in entry["environment"].items()}
        for slug, entry in configuration["functions"].items()
    }
    resources = _shared()
    for slug, entry in configuration["functions"].items():
        resources |= _parts(slug, entry, variables[slug], provider)
    resources |= _streaming(configuration, variables)
    own_parameters: Resource = {
        "SecretPrefix": {"Type": "String", "Default": "rag"},
        "FunctionConcurrency": {"Type": "Number", "Default": 20, "MinValue": 1},
        "AlarmEmail": {"Type": "String", "Default": "", "Description": "Receives alarms"},
        "StreamImageUri": {
            "Type": "String",
            "Default": "",
            "Description": "Image in ECR, built with docker build --target lambda",
        },
    }
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Transform": "AWS::Serverless-2016-10-31",
        "Description": "Citerow: a function for each file of functions/, behind an HTTP API.",
        "Parameters": own_parameters | dict(sorted(values.parameters.items())),
        "Conditions": {
            "HasAlarmEmail": {"Fn::Not": [{"Fn::Equals": [{"Ref": "AlarmEmail"}, ""]}]},
            "HasStreamImage": {"Fn::Not": [{"Fn::Equals": [{"Ref": "StreamImageUri"}, ""]}]},
            **values.conditions,
        },
        "Globals": {
            "Function": {"Architectures": [provider["architecture"]], "Environment": {"Variables": shared}},
        },
        "Resources": resources,
        "Outputs": {
            "Url": {"Value": {"Fn::GetAtt": ["Api", "ApiEndpoint"]}},
            "StreamsUrl": {
                "Condition": "HasStreamImage",
                "Value": {"Fn::GetAtt": ["StreamsUrl", "FunctionUrl"]},
            },
        },
    }


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]
    """Without anchors, which CloudFormation does not read everywhere."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def rendered() -> str:
    text: str = yaml.dump(template(), Dumper=_Dumper, sort_keys=False, width=120)
    return HEAD + text


def main(target: Path = TARGET) -> None:
    target.write_text(rendered())


if __name__ == "__main__":
    main()
