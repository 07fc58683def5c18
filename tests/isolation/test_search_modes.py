"""Attacks through every way of searching, by meaning, word or likeness, and by what statistics might tell."""

import json
from itertools import product
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.actors import Actor, Org, World
from tests.isolation.victim_documents import QUESTION, SECRETS, Library, secrets_in, store
from tests.sql import passages

MODES = ["semantic", "keyword", "hybrid", "hierarchical"]


def search(library: Library, actor: Actor, token: str | None = None, **more: Any) -> httpx.Response:
    """The question, with every secret in it, as PostgREST answers."""
    filters = {"model": library.services.embedder.model, **more.pop("filters", {})}
    text = f"{QUESTION} {' '.join(SECRETS.values())}"
    body = {"query_text": text, "query_vector": library.needle, "top_k": 100, "filters": filters, **more}
    return actor.rpc("rag_search", body, token=token)


def visible_secrets(library: Library, actor: Actor, token: str | None = None, **more: Any) -> set[str]:
    return secrets_in(search(library, actor, token, **more))


def test_every_search_returns_only_visible_rows(shared_library: Library, subtests: pytest.Subtests):
    people = shared_library.people
    secrets: list[tuple[Actor, set[str]]] = [
        (people.ann, {"acme", "ann"}), (people.alf, {"acme"}), (people.ada, {"acme", "ann"}),
        (people.bob, {"bolt"}), (people.kim, {"acme", "bolt"}), (people.sam, set()),
    ]  # fmt: skip
    for mode, neighbours in zip(MODES, (10, 10, 0, 10), strict=True):
        with subtests.test(mode=mode, neighbours=neighbours):
            arguments: dict[str, Any] = {"mode": mode, "expand_context": neighbours, "half_life_days": 30}
            for actor, visible in secrets:
                assert visible_secrets(shared_library, actor, **arguments) == visible


def test_filters_with_ids_of_others_find_nothing(library: Library, world: World, subtests: pytest.Subtests):
    """An org, a collection, a document's label or metadata: missing and hidden ones look the same."""
    people = library.people
    store(library.services, people.bob, SECRETS["bolt"], collection="theirs", metadata={"plan": "x"})
    collection = collection_of(world, people.bolt, "theirs")
    label = "update rag.documents set labels = '{secret}', author = %s where org_id = %s or owner_id = %s"
    world.sql(label, "bob", people.bolt.id, None)
    world.sql(label, "ann", None, people.ann.id)
    filters_of_others: list[dict[str, Any]] = [
        {"org_id": people.bolt.id},
        {"collection_id": collection},
        {"collection_ids": [collection, str(uuid4())]},
        {"labels": ["secret"]},
        {"authors": ["bob", "ann"]},
        *({"metadata": {"plan": plan}} for plan in ("x", {"$in": ["x"]}, {"$gte": "a"}, {"$exists": True})),
        {"document_ids": [library.bolt_document], "org_ids": [people.bolt.id], "authors": ["bob"]},
    ]
    for number, filters in enumerate(filters_of_others):
        # By one leg, and by both.
        for mode in (MODES[number % 2], MODES[2 + number % 2]):
            with subtests.test(mode=mode, filters=filters):
                answer = search(library, people.alf, mode=mode, filters=filters)
                assert (answer.status_code, answer.json()) == (200, []), answer.text
    for mode in MODES:
        assert visible_secrets(library, people.bob, mode=mode, filters={"labels": ["secret"]}) == {"bolt"}


def test_a_filter_that_excludes_shows_no_rows_of_others(library: Library, world: World):
    people = library.people
    conditions = ({"$ne": "y"}, {"$nin": ["y", 1]}, {"$exists": False}, {"$ne": "x"})
    for owned in ({}, {"plan": "x"}):
        statement = "update rag.documents set metadata = %s where org_id = %s or owner_id = %s"
        world.sql(statement, json.dumps(owned), people.bolt.id, people.ann.id)
        for mode, condition in product(MODES[:2], conditions):
            filters = {"metadata": {"plan": condition}}
            case = (owned, mode, condition)
            assert visible_secrets(library, people.alf, mode=mode, filters=filters) == {"acme"}, case
            assert visible_secrets(library, people.sam, mode=mode, filters=filters) == set(), case


HOW = [{"mode": mode, "result": result} for mode in MODES[:3] for result in ("chunks", "documents")]


def test_similar_results_never_include_hidden_chunks(library: Library):
    people = library.people
    mine = {"document_id": store(library.services, people.alf, "4417")}
    model = {"filters": {"model": library.services.embedder.model}}
    text = {"query_text": " ".join(SECRETS.values()), "query_vector": library.needle, **model}
    subjects: tuple[dict[str, Any], ...] = (mine, text)
    for subject, how in product(subjects, HOW):
        arguments = {**subject, "top_k": 100, "prefer": ["doc"], **how}
        texts = people.alf.rpc("rag_similar", arguments).text
        assert {whose for whose, secret in SECRETS.items() if secret in texts} == {"acme"}, arguments


def rows_by_mode(library: Library, actor: Actor, token: str | None = None) -> dict[str, list[dict[str, Any]]]:
    return {mode: passages.untimed(search(library, actor, token, mode=mode).json()) for mode in MODES}


def test_term_statistics_do_not_reveal_private_documents(library: Library):
    people = library.people
    for secret in ("vault", "door"):
        store(library.services, people.alf, secret)
    before = rows_by_mode(library, people.alf)
    for number in range(5):
        store(library.services, people.ann, f"vault door {SECRETS['acme']} " * 5, private=True, lang="de")
        store(library.services, people.bob, f"vault {number}", lang="fr")
    assert rows_by_mode(library, people.alf) == before


def collection_of(world: World, org: Org, name: str) -> str:
    ((collection,),) = world.sql(
        "select id::text from rag.collections where name = %s and org_id = %s", name, org.id
    )
    return str(collection)


def test_a_bound_key_searches_only_its_collection(library: Library, world: World):
    people = library.people
    store(library.services, people.ann, "the vault", collection="narrow")
    collection = collection_of(world, people.acme, "narrow")
    token = people.ann.key_token(scopes=["retrievals:read"], collection=collection)
    before = rows_by_mode(library, people.ann, token)
    assert {row["collection_id"] for rows in before.values() for row in rows} == {collection}
    assert all(before.values())
    store(library.services, people.ann, f"vault door {SECRETS['acme']}")
    assert rows_by_mode(library, people.ann, token) == before
    assert not any(secret in str(before) for secret in SECRETS.values())
    refused = people.ann.rpc("rag_similar", {"document_id": library.acme_document}, token=token)
    assert refused.status_code == 404


POISON: dict[str, dict[str, Any]] = {
    "labels": {"labels": [f"{number:03}" * 33 for number in range(100)]},
    "metadata": {"metadata": {f"key {number}": number for number in range(2500)}},
    "number": {"metadata": {"n": 1e200, "m": -0.0}},
    "a long identifier": {"text": "a-" * 50_000},
    "many identifiers": {"text": " ".join(f"a-{number}" for number in range(11_000))},
    "repeated": {"text": "vault " * 16_000},
    "stop words": {"text": "the of and", "title": "The and of"},
    "query syntax": {"text": "vault & | ! ' \" \\ :* <-> ( ) %s {} $1 $query$ --", "title": "'; select 1 --"},
    "facets": {"author": "metadata.plan", "origin": "label:x", "state": "'"},
}


def test_a_poisoned_document_affects_no_search(library: Library, world: World, subtests: pytest.Subtests):
    people, model = library.people, library.services.embedder.model
    for poison, fields in POISON.items():
        with subtests.test(poison):
            text = fields.get("text", "vault")
            more = {name: value for name, value in fields.items() if name != "text"}
            document_id = passages.put(world, people.ann, text, embedding_model=model, **more)
            try:
                for mode in MODES:
                    assert visible_secrets(library, people.alf, mode=mode) == {"acme"}
                assert visible_secrets(library, people.ann, mode="hybrid") == {"acme", "ann"}
                request = {"query_text": text[:10_000], "mode": "keyword", "expand_context": 3}
                answer = people.alf.rpc("rag_search", {**request, "filters": {"model": model}})
                assert answer.status_code == 200, answer.text
                similar = people.alf.rpc("rag_similar", {"document_id": library.acme_document})
                assert similar.status_code == 200, similar.text
            finally:
                passages.delete(world, people.ann, document_id)


def test_similar_accepts_no_subject_of_others(shared_library: Library, world: World):
    alf, subjects = shared_library.people.alf, list[dict[str, str]]()
    for document_id in (shared_library.bolt_document, shared_library.ann_document, str(uuid4())):
        rows = world.sql("select id::text from rag.chunks where document_id = %s limit 1", document_id)
        subjects += [{"document_id": document_id}, {"chunk_id": rows[0][0] if rows else str(uuid4())}]
    for how in HOW:
        answers = [alf.rpc("rag_similar", subject | how) for subject in subjects]
        assert {answer.status_code for answer in answers} == {404}, how
        assert len({answer.text for answer in answers}) == 1, how
