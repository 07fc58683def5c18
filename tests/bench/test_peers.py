"""The comparison with other stores: their apps, and a small run with all stores."""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from rich.console import Console

from bench import peers, request_path
from bench.interleaved import connect
from bench.load_generator import Request
from bench.request_path import Cell
from bench.tenant_rows import Org
from bench.tenants import TenantDatabase
from local.postgres import SUPERUSER
from local.stack import Stack


@dataclass(frozen=True)
class Served:
    url: str
    tenants: TenantDatabase
    cell: Cell


@pytest.fixture(scope="module")
def served(stack: Stack) -> Iterator[Served]:
    """The guides' function behind FastAPI, which needs no further packages, with a few orgs."""
    store = peers.STORES[peers.TEXTBOOK]
    with psycopg.connect(stack.database_url(SUPERUSER), autocommit=True) as connection:
        tenants = TenantDatabase(stack, connection, "all-MiniLM-L6-v2")
        tenants.add([Org(1, 200, 20), Org(2, 60, 10), Org(3, 10, 10)])
        try:
            with peers.stand_ins(tenants) as environment:
                peers.create(tenants, store, Path(sys.executable), environment)
                tenants.show_functions()
                with peers.served(store, Path(sys.executable), environment, stack.folder / "logs") as url:
                    yield Served(url, tenants, request_path.cells_of(tenants)[1])
        finally:
            connection.execute("drop table public.documents")
            connection.execute("drop function public.match_documents")
            tenants.show_functions()


def test_a_store_searches_the_org_of_the_cell(served: Served):
    contender = peers.search(served.url)
    times = request_path.run(served.cell, {peers.TEXTBOOK: contender}, 3, 1)[peers.TEXTBOOK]
    assert times.alone.recall == 1
    assert times.together.statuses == {200: request_path.REQUESTS}
    rows = post(served.url, contender.request(served.cell, 0, 0))["results"]
    assert {row["metadata"]["org_id"] for row in rows} == {str(served.cell.org.id)}


def test_each_new_document_becomes_a_row_of_its_org(served: Served):
    batch = next(peers.batches())
    post(served.url, peers.add_request(peers.TEXTBOOK, served.cell.token, batch))
    assert peers.count_documents(served.tenants, peers.TEXTBOOK) == len(batch) == peers.AT_ONCE
    assert served.tenants.connection.execute(
        "select distinct metadata ->> 'org_id' from public.documents where content like 'New document %'"
    ).fetchall() == [(str(peers.INGESTED.id),)]


@pytest.mark.long
def test_all_stores_are_measured_in_each_cell():
    figures = {figure.name: figure for figure in peers.measure(Console(), 10_000, 5)}
    sizes = ("5,000 chunks", "300 chunks", "10 chunks")
    expected = {
        f"{figure}, {size}, {system}"
        for figure in ("recall", "p50", "requests")
        for size in sizes
        for system in peers.SYSTEMS
    }
    assert expected < set(figures)
    assert {f"rows, {name}" for name in (peers.OURS, *peers.PEERS)} < set(figures)
    assert [figures[f"recall, {size}, {peers.OURS}"].value for size in sizes] == pytest.approx(
        [1, 1, 1], abs=0.02
    )


def post(url: str, request: Request) -> dict[str, list[dict[str, dict[str, str]]]]:
    with connect(url) as connection:
        connection.request(request.method, request.path, request.body, request.headers)
        answer = connection.getresponse()
        content: dict[str, list[dict[str, dict[str, str]]]] = json.loads(answer.read())
        assert answer.status == 200
    return content
