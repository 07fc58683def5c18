"""python -m local search: every way of searching from the command line."""

from subprocess import CompletedProcess

import pytest

from local.seed_demo import principals_of
from local.stack import Stack
from shared.ingestion.synchronous_ingestion import NewDocument, ingest
from shared.services import Services
from tests.actors import World
from tests.hosted_reranker import MODEL, hosted_reranker
from tests.local.command_line import run_local

READER = "tomas@halden.example"


def search(stack: Stack, *arguments: str, **variables: str) -> CompletedProcess[str]:
    return run_local(stack.folder, "search", *arguments, **variables)


@pytest.fixture
def manual(stack: Stack, services: Services, world: World) -> str:
    """A document of Halden's, by its title."""
    ((org_id,),) = world.sql("select id::text from rag.orgs where name like 'Halden%%'")
    text = "The valve ZX-81 opens at four bar. Turn the wheel to close it."
    document = NewDocument(org_id, "Manual of the valve", text, external_id="valve", lang="en")
    ingest(services.database, services.embedder, principals_of(stack)(READER), document)
    return document.title


@pytest.mark.parametrize("mode", ["semantic", "keyword", "hybrid", "hierarchical", "graph"])
def test_each_mode_prints_its_results(stack: Stack, manual: str, mode: str):
    result = search(stack, "at how many bar does the valve open?", "--user", READER, "--mode", mode)
    assert result.returncode == 0, result.stderr
    assert f"1. {manual} (doc)" in result.stdout
    assert ("similarity" in result.stdout) is (mode != "keyword")


def test_a_name_is_found_with_neighbours_and_reranking(stack: Stack, manual: str):
    result = search(
        stack, "ZX-81", "--user", READER, "--top-k", "1", "--neighbours", "1", "--half-life", "900"
    )
    assert f"1. {manual} (doc)" in result.stdout
    arguments = "closing the valve", "--user", READER, "--rerank", "--source-type", "doc"
    assert "; not reranked: the reranker failed or is not configured" in search(stack, *arguments).stdout
    with hosted_reranker("ZX-81") as reranker:
        variables = {name.upper(): value for name, value in reranker.items()}
        result = search(stack, *arguments, **variables)
    assert f"; reranked by {MODEL}" in result.stdout


def test_an_invalid_search_is_reported_in_one_line(stack: Stack):
    for arguments in (("",), ("text", "--top-k", "500"), ("text", "--neighbours", "99")):
        result = search(stack, *arguments, "--user", READER)
        assert result.returncode == 1
        assert result.stderr.splitlines()[-1].startswith("error: ")
