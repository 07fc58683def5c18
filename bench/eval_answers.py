"""Answers and confidence over the demo's documents and a handbook: bench/datasets/confidence.

    python -m bench.eval_answers [--write FILE] [--dataset shared/calibration/questions/clinics]

Each of the questions is asked over HTTP as its asker, without a model. The report has the level by kind of
question and whether an answer has the evidence, for the rag API, and how often all five APIs agree.
The questions on the handbooks are among those that fit a model's first calibration; the others fit
nothing.
"""

import argparse
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import psycopg
from rich.console import Console

from bench.bench_stack import temporary_stack
from bench.figures import read_lines
from local.demo_corpus import ORGS
from local.seed_demo import COLLECTION, Authorise, demo_files, ingest_files, make_services, principals_of
from local.stack import Stack
from shared.calibration.fit_to_shipped_questions import SHIPPED
from shared.ingestion.synchronous_ingestion import NewDocument, ingest_many
from shared.services import Services

Line = dict[str, Any]
DATASETS = Path(__file__).parent / "datasets"
DATASET = DATASETS / "confidence"
# The handbook of the first and its questions; another handbook with its questions.
BIKES, CASES = SHIPPED / "cargo_bikes", SHIPPED / "clinics"
READINGS = DATASET / "readings.tsv"
RESULTS = Path(__file__).parent / "results" / "answers.json"
RESULTS_OF_CASES = RESULTS.with_name("confidence_cases.json")
MERROW = str(uuid4())
# One user may ask thousands of questions.
NO_LIMITS = (
    "update rag.tiers set requests_per_day = null, rag_requests_per_minute = 100000, "
    "api_requests_per_minute = 100000"
)
ASKER_OF_TWO_ORGS = "kofi@consulting.example"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.eval_answers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--write", type=Path, help="a file that gets each question with its answers")
    parser.add_argument("--dataset", type=Path, default=DATASET)
    arguments = parser.parse_args()
    console = Console()
    dataset = arguments.dataset.resolve()
    handbook = BIKES if dataset == DATASET else dataset
    questions = [
        line for folder in {dataset: 0, handbook: 0} for line in read_lines(folder / "queries.jsonl")
    ]
    with temporary_stack() as stack, closing(make_services(stack)) as services:
        _add_merrow(stack)
        principal = principals_of(stack)
        ingest_files(services, demo_files(), principal, console)
        _ingest_handbook(services, principal, handbook)
        lines = list(ask(stack, principal, questions))
    if arguments.write:
        arguments.write.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    summary = summarize(lines)
    results = {DATASET: RESULTS, CASES: RESULTS_OF_CASES}.get(dataset)
    if results:
        results.write_text(json.dumps(summary, indent=1) + "\n")
    console.print_json(data=summary)
    return 0


def summarize(lines: Sequence[Line]) -> Line:
    """By way of unanswerable and kind of answerable questions: how many, called high, answered, and, of the
    answerable, with the evidence in the answer; for the rag API. `agreement`: of all five."""
    groups: dict[str, list[Line]] = defaultdict(list)
    for line in lines:
        groups["answerable" if line["answerable"] else "unanswerable"].append(line)
        groups[line["way"] or line["kind"]].append(line)
    return {
        "groups": {
            name: {
                "questions": len(group),
                "high": sum(_level(line) == "high" for line in group),
                "answered": sum(_level(line) != "low" for line in group),
                "with_evidence": sum(line["has_evidence"] for line in group),
            }
            for name, group in groups.items()
        },
        "levels": Counter(map(_level, lines)),
        "agreement": _agreement([line for line in lines if len(line["details"]) > 1]),
    }


def _agreement(lines: Sequence[Line]) -> Line:
    """Of how many questions all APIs have one level, how many levels the rag API's rule lowered, and those
    that differ."""
    levels = {line["id"]: {api: detail["level"] for api, detail in line["details"].items()} for line in lines}
    different = {number: each for number, each in levels.items() if len({*each.values()}) > 1}
    return {
        "questions": len(lines),
        "same level": len(lines) - len(different),
        "rag lower": sum(
            reason.startswith("The mean similarity")
            for line in lines
            for reason in line["details"]["rag"]["because"]
        ),
        "different": different,
    }


def _level(line: Line) -> str:
    level: str = line["details"]["rag"]["level"]
    return level


def readings() -> Counter[str]:
    """The number of answers that a reader called right, half and wrong."""
    lines = READINGS.read_text().splitlines()[1:]
    return Counter(line.split("\t")[1] for line in lines)


def ask(stack: Stack, principal: Authorise, questions: Sequence[Line]) -> Iterator[Line]:
    """Of each question the rag API's answer, and the confidence of each API. Of an asker of two orgs only the
    rag API is asked, because the others search one collection. The rag API searches all collections of an
    org, which has one."""
    with psycopg.connect(stack.database_url(), autocommit=True) as connection:
        connection.execute(NO_LIMITS)
        rows = connection.execute("select org_id::text, id::text from rag.collections").fetchall()
    collections: dict[str, str] = {str(org_id): str(collection_id) for org_id, collection_id in rows}
    with httpx.Client(base_url=stack.url, timeout=60) as client:
        for question in questions:
            about = question["meta"]
            org_id = {**ORGS, "merrow": MERROW}[about["org"]]
            name = "default" if about["org"] == "merrow" else COLLECTION
            requests = _requests(question["text"], org_id, name, collections[org_id])
            if about["asker"] == ASKER_OF_TWO_ORGS:
                requests = requests[:1]
            token = principal(about["asker"]).token
            bodies = {api: _post(client, path, body, token) for api, path, body in requests}
            yield _line(question, bodies)


def _line(question: Line, bodies: Mapping[str, Any]) -> Line:
    about, text = question["meta"], bodies["rag"]["answer"]["text"]
    details = {api: _detail(body) for api, body in bodies.items()}
    fields = {name: about.get(name) for name in ("answerable", "way", "kind", "answer", "evidence", "reason")}
    return {
        "id": question["id"],
        "question": question["text"],
        **fields,
        "has_evidence": all(_plain(part) in _plain(text) for part in about.get("evidence") or ["\0"]),
        "text": text,
        "details": details,
    }


def _requests(
    question: str, org_id: str, collection: str, collection_id: str
) -> list[tuple[str, str, dict[str, Any]]]:
    """Of each API its name, path and body."""
    return [
        ("rag", "/api/rag/answer", {"query_text": question, "filters": {"org_id": org_id}}),
        ("index", "/query", {"index_name": collection, "query": question}),
        ("knowledge", f"/api/v1/knowledge/{collection}/query", {"question": question}),
        (
            "platform",
            "/api/v1/chat",
            {"message": question, "collection_id": collection_id, "stream": False},
        ),
        ("search", "/v1/answer", {"workspaceId": f"ws_{collection_id}", "question": question}),
    ]


def _post(client: httpx.Client, path: str, body: dict[str, Any], token: str) -> Any:
    reply = client.post(path, json=body, headers={"Authorization": f"Bearer {token}"})
    reply.raise_for_status()
    return reply.json()


def _detail(body: Any) -> dict[str, Any]:
    # The name's spelling and place depend on the contract.
    text = json.dumps(body)
    start = re.search(r'"confidence_?[dD]etail": ', text)
    assert start, text
    detail: dict[str, Any] = json.JSONDecoder().raw_decode(text, start.end())[0]
    return detail


def _plain(text: str) -> str:
    return re.sub(r"[\s*_`|]+", " ", text).casefold()


def _add_merrow(stack: Stack) -> None:
    with psycopg.connect(stack.database_url(), autocommit=True) as connection:
        connection.execute("insert into rag.orgs (id, name) values (%s, 'Merrow')", [MERROW])
        for email, role in (("hugo@merrow.example", "admin"), ("lotte@merrow.example", "member")):
            user = str(uuid4())
            connection.execute("insert into auth.users (id, email) values (%s, %s)", [user, email])
            connection.execute(
                "insert into rag.members (org_id, user_id, role) values (%s, %s, %s)", [MERROW, user, role]
            )


def _ingest_handbook(services: Services, principal: Authorise, dataset: Path) -> None:
    for line in read_lines(dataset / "corpus.jsonl"):
        about = line["meta"]
        date = about.get("date")
        document = NewDocument(
            line["title"],
            line["text"],
            external_id=line["id"],
            source_type=about.get("source_type"),
            lang=about.get("lang"),
            occurred_at=datetime.fromisoformat(f"{date}T00:00:00+00:00") if date else None,
        )
        ingest_many(
            services.database, services.embedder, principal("hugo@merrow.example"), "default", [document]
        )


if __name__ == "__main__":
    sys.exit(main())
