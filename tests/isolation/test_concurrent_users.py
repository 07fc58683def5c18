"""Attacks many users at once."""

from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from typing import Any

import httpx

from shared.models.embedding_roles import Role
from shared.models.embeddings import embed
from shared.services import Services
from tests.actors import Actor, World
from tests.isolation.victim_documents import MATCH, QUESTION, SECRETS, store


def tool_call(name: str, **arguments: str) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


def test_two_hundred_concurrent_calls_of_two_orgs_never_mix_rows(
    services: Services, client: httpx.Client, world: World
):
    orgs = {"acme": world.org("Acme"), "bolt": world.org("Bolt")}
    users = {name: [world.user(org) for _ in range(4)] for name, org in orgs.items()}
    for name, (first, *_) in users.items():
        store(services, first, SECRETS[name])
    needle = embed(services.embedder, [QUESTION], Role.QUESTION)[0]
    # Five and eight have no common factor: every user calls every entry point.
    entry_points: list[tuple[str, Any]] = [
        ("/api/rag/search", {"query_text": QUESTION}),
        ("/api/rag/answer", {"query_text": QUESTION}),
        (MATCH, {"query_vector": needle, "filters": {"model": services.embedder.model}}),
        ("/mcp", tool_call("search", query=QUESTION)),
        ("/mcp", tool_call("answer", question=QUESTION)),
    ]
    # Users of the two orgs take turns, so that every pooled connection serves both.
    askers = [(name, users[name][number]) for number in range(4) for name in orgs]
    calls = list(islice(zip(cycle(askers), cycle(entry_points), strict=False), 200))

    def ask(call: tuple[tuple[str, Actor], tuple[str, Any]]) -> tuple[str, httpx.Response]:
        (name, actor), (route, body) = call
        return name, client.post(route, json=body, headers=actor.headers())

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(ask, calls))

    assert [answer.text for _, answer in answers if answer.status_code != 200] == []
    other = {"acme": "bolt", "bolt": "acme"}
    for name, answer in answers:
        assert SECRETS[name] in answer.text
        # The tools' results name no org.
        assert orgs[name].id in answer.text or answer.request.url.path == "/mcp"
        assert SECRETS[other[name]] not in answer.text
        assert orgs[other[name]].id not in answer.text
    assert len(answers) == 200
