"""Answers and confidence over the demo's documents and a handbook: bench/datasets/confidence.

    python -m bench.eval_answers [--write FILE] [--dataset bench/datasets/confidence_cases]

Each of the questions is asked as its asker, without a model, through the searches of three APIs: rag
(semantic, with the contract's ceiling), index and knowledge (hybrid), platform (graph). The report has the
level by kind of question, whether an answer has the evidence, and how often the APIs agree, also over HTTP:
there all five are asked, as askers of one org. The sets fit nothing.
"""

import argparse
import asyncio
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import psycopg
from rich.console import Console

from bench.labelled_sets import temporary_services
from local.demo_corpus import ORGS
from local.seed_demo import COLLECTION, Authorise, demo_files, ingest_files, principals_of
from local.stack import Stack
from shared import pipeline
from shared.ingestion.synchronous_ingestion import NewDocument, ingest
from shared.services import Services
from shared.types import Filters, Mode, Query

DATASETS = Path(__file__).parent / "datasets"
DATASET, CASES = DATASETS / "confidence", DATASETS / "confidence_cases"
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
APIS = {
    "rag": (Query("", 8), True),
    "index": (Query("", 5, mode=Mode.HYBRID), False),
    "platform": (Query("", 5, mode=Mode.GRAPH), False),
}


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
    questions = _lines(arguments.dataset / "queries.jsonl")
    with temporary_services() as (stack, services):
        _add_merrow(stack)
        principal = principals_of(stack)
        ingest_files(services, demo_files(), principal, console)
        _ingest_handbook(services, principal, arguments.dataset)
        lines = [_answers(services, principal, question) for question in questions]
        over_http = _over_http(stack, principal, questions)
    if arguments.write:
        arguments.write.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    summary = {**summarize(lines), "over_http": over_http}
    results = {DATASET: RESULTS, CASES: RESULTS_OF_CASES}.get(arguments.dataset.resolve())
    if results:
        results.write_text(json.dumps(summary, indent=1) + "\n")
    console.print_json(data=summary)
    return 0


def summarize(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """By way of unanswerable and kind of answerable questions: how many, called high, answered, and, of the
    answerable, with the evidence in the answer; for the rag API. `agreement`: equal levels of all APIs."""
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in lines:
        groups["answerable" if line["answerable"] else "unanswerable"].append(line)
        groups[line["way"] or line["kind"]].append(line)
    levels = [{name: api["level"] for name, api in line["apis"].items()} for line in lines]
    return {
        "groups": {
            name: {
                "questions": len(group),
                "high": sum(line["apis"]["rag"]["level"] == "high" for line in group),
                "answered": sum(line["apis"]["rag"]["level"] != "low" for line in group),
                "with_evidence": sum(line["apis"]["rag"]["has_evidence"] for line in group),
            }
            for name, group in groups.items()
        },
        "agreement": {
            "index and platform": sum(each["index"] == each["platform"] for each in levels),
            "all": sum(len(set(each.values())) == 1 for each in levels),
            "rag lower": sum(line["apis"]["rag"]["held_down"] for line in lines),
            "questions": len(levels),
        },
        "levels": Counter(each["rag"] for each in levels),
    }


def readings() -> Counter[str]:
    """The number of answers that a reader called right, half and wrong."""
    lines = READINGS.read_text().splitlines()[1:]
    return Counter(line.split("\t")[1] for line in lines)


def _answers(services: Services, principal: Authorise, question: Mapping[str, Any]) -> dict[str, Any]:
    about = question["meta"]
    org_id = {**ORGS, "merrow": MERROW}[about["org"]]
    apis = {}
    for name, (query, has_ceiling) in APIS.items():
        own_query = replace(query, text=question["text"], filters=Filters(org_id=org_id))
        caller = principal(about["asker"])
        answer = asyncio.run(pipeline.answer(services, caller, own_query, has_ceiling=has_ceiling))
        text = answer.draft.text if answer.draft else ""
        apis[name] = {
            "level": answer.judgement.confidence.value,
            "score": round(answer.judgement.score, 3),
            "because": answer.judgement.because,
            "held_down": any(reason.startswith("The mean similarity") for reason in answer.judgement.because),
            "has_evidence": all(_plain(part) in _plain(text) for part in about.get("evidence") or ["\0"]),
            "text": text,
        }
    fields = {name: about.get(name) for name in ("answerable", "way", "kind", "answer", "evidence", "reason")}
    return {"id": question["id"], "question": question["text"], **fields, "apis": apis}


def _over_http(stack: Stack, principal: Authorise, questions: list[dict[str, Any]]) -> dict[str, Any]:
    """Of how many questions the levels, and the levels and reasons without figures, are the same in all five
    APIs, and the levels of those that differ. The rag API searches all collections of the caller, who has
    one."""
    with psycopg.connect(stack.database_url(), autocommit=True) as connection:
        connection.execute(NO_LIMITS)
        rows = connection.execute("select org_id::text, id::text from rag.collections").fetchall()
    collections: dict[str, str] = {str(org_id): str(collection_id) for org_id, collection_id in rows}
    counts = {"questions": 0, "same level": 0, "same level and reasons": 0}
    different = {}
    with httpx.Client(base_url=stack.url, timeout=60) as client:
        for question in questions:
            about = question["meta"]
            if about["asker"] == ASKER_OF_TWO_ORGS:
                continue
            org_id = {**ORGS, "merrow": MERROW}[about["org"]]
            name = "default" if about["org"] == "merrow" else COLLECTION
            token = principal(about["asker"]).token
            details = {
                api: _detail(client, path, body, token)
                for api, path, body in _requests(question["text"], name, collections[org_id])
            }
            levels = {api: detail["level"] for api, detail in details.items()}
            is_same = len({*levels.values()}) == 1
            # The first reason has the figures of the best passage, whose words weigh by those of the others.
            has_same_reasons = len({tuple(detail["because"][1:]) for detail in details.values()}) == 1
            counts["questions"] += 1
            counts["same level"] += is_same
            counts["same level and reasons"] += is_same and has_same_reasons
            if not is_same:
                different[question["id"]] = levels
    return {**counts, "different": different}


def _requests(question: str, collection: str, collection_id: str) -> list[tuple[str, str, dict[str, Any]]]:
    """Of each API its name, path and body."""
    return [
        ("rag", "/api/rag/answer", {"query_text": question}),
        ("index", "/query", {"index_name": collection, "query": question}),
        ("knowledge", f"/api/v1/knowledge/{collection}/query", {"question": question}),
        (
            "platform",
            "/api/v1/chat",
            {"message": question, "collection_id": collection_id, "stream": False},
        ),
        ("search", "/v1/answer", {"workspaceId": f"ws_{collection_id}", "question": question}),
    ]


def _detail(client: httpx.Client, path: str, body: dict[str, Any], token: str) -> dict[str, Any]:
    reply = client.post(path, json=body, headers={"Authorization": f"Bearer {token}"})
    reply.raise_for_status()
    # The name's spelling and place depend on the contract.
    text = json.dumps(reply.json())
    start = re.search(r'"confidence_?[dD]etail": ', text)
    assert start, path
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
    for line in _lines(dataset / "corpus.jsonl"):
        about = line["meta"]
        date = about.get("date")
        document = NewDocument(
            MERROW,
            line["title"],
            line["text"],
            external_id=line["id"],
            source_type=about.get("source_type"),
            lang=about.get("lang"),
            occurred_at=datetime.fromisoformat(f"{date}T00:00:00+00:00") if date else None,
        )
        ingest(services.database, services.embedder, principal("hugo@merrow.example"), document)


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


if __name__ == "__main__":
    sys.exit(main())
