"""Attacks through every way of searching, by meaning, word or likeness, and by what statistics might tell."""

import json
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.actors import Actor, World
from tests.isolation.victim_documents import QUESTION, SECRETS, Library, store
from tests.sql import passages

MODES = ["semantic", "keyword", "hybrid", "hierarchical"]
every_mode = pytest.mark.parametrize("mode", MODES)


def search(library: Library, actor: Actor, token: str | None = None, **more: Any) -> httpx.Response:
    """The question, with every secret in it, as PostgREST answers."""
    filters = {"model": library.services.embedder.model, **more.pop("filters", {})}
    text = f"{QUESTION} {' '.join(SECRETS.values())}"
    body = {"query_text": text, "query_vector": library.needle, "top_k": 100, "filters": filters, **more}
    return actor.rpc("rag_search", body, token=token)


def visible_secrets(library: Library, actor: Actor, token: str | None = None, **more: Any) -> set[str]:
    answer = search(library, actor, token, **more)
    assert answer.status_code == 200, answer.text
    return {whose for whose, secret in SECRETS.items() if secret in answer.text}


@every_mode
@pytest.mark.parametrize("neighbours", [0, 10])
def test_every_search_returns_only_visible_rows(shared_library: Library, mode: str, neighbours: int):
    people = shared_library.people
    arguments: dict[str, Any] = {"mode": mode, "expand_context": neighbours, "half_life_days": 30}
    assert visible_secrets(shared_library, people.ann, **arguments) == {"acme", "ann"}
    assert visible_secrets(shared_library, people.alf, **arguments) == {"acme"}
    assert visible_secrets(shared_library, people.ada, **arguments) == {"acme", "ann"}
    assert visible_secrets(shared_library, people.bob, **arguments) == {"bolt"}
    assert visible_secrets(shared_library, people.kim, **arguments) == {"acme", "bolt"}
    assert visible_secrets(shared_library, people.sam, **arguments) == set()


@every_mode
def test_filters_with_ids_of_others_find_nothing(library: Library, world: World, mode: str):
    """An org, a collection, a document's label or metadata: missing and hidden ones look the same."""
    people = library.people
    store(library.services, people.bob, SECRETS["bolt"], collection="theirs", metadata={"plan": "x"})
    ((collection,),) = world.sql(
        "select id::text from rag.collections where name = 'theirs' and org_id = %s", people.bolt.id
    )
    world.sql(
        "update rag.documents set labels = '{secret}', author = 'bob' where org_id = %s", people.bolt.id
    )
    world.sql(
        "update rag.documents set labels = '{secret}', author = 'ann' where owner_id = %s", people.ann.id
    )
    for filters in (
        {"org_id": people.bolt.id},
        {"collection_id": collection},
        {"collection_ids": [collection, str(uuid4())]},
        {"labels": ["secret"]},
        {"authors": ["bob", "ann"]},
        {"metadata": {"plan": "x"}},
        {"metadata": {"plan": {"$in": ["x"]}}},
        {"metadata": {"plan": {"$gte": "a"}}},
        {"metadata": {"plan": {"$exists": True}}},
        {"document_ids": [library.bolt_document], "org_ids": [people.bolt.id], "authors": ["bob"]},
    ):
        answer = search(library, people.alf, mode=mode, filters=filters)
        assert (answer.status_code, answer.json()) == (200, []), (filters, answer.text)
    assert visible_secrets(library, people.bob, mode=mode, filters={"labels": ["secret"]}) == {"bolt"}


@every_mode
def test_a_filter_that_excludes_shows_no_rows_of_others(library: Library, world: World, mode: str):
    """All that it leaves is visible without it, whether the rows of others have the value or not."""
    people = library.people
    for owned in ({}, {"plan": "x"}):
        statement = "update rag.documents set metadata = %s where org_id = %s or owner_id = %s"
        world.sql(statement, json.dumps(owned), people.bolt.id, people.ann.id)
        for condition in ({"$ne": "y"}, {"$nin": ["y", 1]}, {"$exists": False}, {"$ne": "x"}):
            filters = {"metadata": {"plan": condition}}
            assert visible_secrets(library, people.alf, mode=mode, filters=filters) == {"acme"}
            assert visible_secrets(library, people.sam, mode=mode, filters=filters) == set()


@pytest.mark.parametrize("mode", ["semantic", "keyword", "hybrid"])
@pytest.mark.parametrize("result", ["chunks", "documents"])
def test_similar_accepts_no_subject_of_others(library: Library, world: World, result: str, mode: str):
    """Another org's, another owner's and a missing chunk or document are the same 404."""
    people = library.people
    answers = []
    for document_id in (library.bolt_document, library.ann_document, str(uuid4())):
        rows = world.sql("select id::text from rag.chunks where document_id = %s limit 1", document_id)
        chunk_id = rows[0][0] if rows else str(uuid4())
        subjects = ({"document_id": document_id}, {"chunk_id": chunk_id})
        how = {"result": result, "mode": mode}
        answers += [people.alf.rpc("rag_similar", subject | how) for subject in subjects]
    assert {answer.status_code for answer in answers} == {404}
    assert len({answer.text for answer in answers}) == 1


@pytest.mark.parametrize("mode", ["semantic", "keyword", "hybrid"])
@pytest.mark.parametrize("result", ["chunks", "documents"])
def test_similar_results_never_include_hidden_chunks(library: Library, mode: str, result: str):
    people = library.people
    mine = {"document_id": store(library.services, people.alf, "4417")}
    model = {"filters": {"model": library.services.embedder.model}}
    text = {"query_text": " ".join(SECRETS.values()), "query_vector": library.needle, **model}
    for subject in (mine, text):
        how = {"top_k": 100, "mode": mode, "result": result, "prefer": ["doc"]}
        texts = people.alf.rpc("rag_similar", subject | how).text
        assert SECRETS["acme"] in texts
        assert SECRETS["ann"] not in texts
        assert SECRETS["bolt"] not in texts


@every_mode
def test_term_statistics_do_not_reveal_private_documents(library: Library, mode: str):
    """Words in documents that I may not see, however many, change no row, score or order of mine."""
    people = library.people
    for secret in ("vault", "door"):
        store(library.services, people.alf, secret)
    before = passages.untimed(search(library, people.alf, mode=mode).json())
    for number in range(5):
        store(library.services, people.ann, f"vault door {SECRETS['acme']} " * 5, private=True, lang="de")
        store(library.services, people.bob, f"vault {number}", lang="fr")
    assert passages.untimed(search(library, people.alf, mode=mode).json()) == before


@every_mode
def test_a_bound_key_searches_only_its_collection(library: Library, world: World, mode: str):
    """It finds its documents, by that collection's own statistics, and nothing around it."""
    people = library.people
    store(library.services, people.ann, "the vault", collection="narrow")
    ((collection,),) = world.sql(
        "select id::text from rag.collections where name = 'narrow' and org_id = %s", people.acme.id
    )
    token = people.ann.key_token(scopes=["retrievals:read"], collection=collection)
    before = passages.untimed(search(library, people.ann, token, mode=mode).json())
    assert {row["collection_id"] for row in before} == {collection}
    store(library.services, people.ann, f"vault door {SECRETS['acme']}")
    assert passages.untimed(search(library, people.ann, token, mode=mode).json()) == before
    assert visible_secrets(library, people.ann, token, mode=mode) == set()
    refused = people.ann.rpc("rag_similar", {"document_id": library.acme_document}, token=token)
    assert refused.status_code == 404


POISON: dict[str, dict[str, Any]] = {
    "labels": {"labels": [f"{number:03}" * 33 for number in range(100)]},
    "metadata": {"metadata": {f"key {number}": number for number in range(2500)}},
    "nested": {"metadata": json.loads('{"a":' * 30 + "[1.0]" + "}" * 30)},
    "number": {"metadata": {"n": 1e200, "m": -0.0}},
    "a long word": {"text": "x" * 100_000},
    "a long identifier": {"text": "a-" * 50_000},
    "many words": {"text": " ".join(map(str, range(17_000)))},
    "many identifiers": {"text": " ".join(f"a-{number}" for number in range(11_000))},
    "repeated": {"text": "vault " * 16_000},
    "punctuation": {"text": "-/.:@&+<>~#_" * 8_000},
    "ideographs": {"text": "金庫" * 50_000},
    "stop words": {"text": "the of and", "title": "The and of"},
    "an emoji": {"text": "🙂", "title": "🙂"},
    "query syntax": {"text": "vault & | ! ' \" \\ :* <-> ( ) %s {} $1 $query$ --", "title": "'; select 1 --"},
    "another language": {"lang": "tlh-Latn", "text": "vault"},
    "facets": {"author": "metadata.plan", "origin": "label:x", "state": "'"},
}


@pytest.mark.parametrize("poison", POISON)
def test_a_poisoned_document_affects_no_other_org(library: Library, world: World, poison: str):
    """Stored or refused: no search breaks by it, in any mode."""
    people = library.people
    model = library.services.embedder.model
    fields = {"embedding_model": model, **POISON[poison]}
    text = fields.pop("text", "vault")
    passages.put(world, people.ann, text, **fields)
    for mode in MODES:
        assert visible_secrets(library, people.alf, mode=mode) == {"acme"}
        assert visible_secrets(library, people.ann, mode=mode) == {"acme", "ann"}
    request = {
        "query_text": text[:10_000],
        "mode": "keyword",
        "filters": {"model": model},
        "expand_context": 3,
    }
    answer = people.alf.rpc("rag_search", request)
    assert answer.status_code == 200, answer.text
    similar = people.alf.rpc("rag_similar", {"document_id": library.acme_document})
    assert similar.status_code == 200, similar.text


@every_mode
def test_texts_without_terms_reveal_nothing(library: Library, world: World, mode: str):
    """Means over nothing divide by nothing."""
    ann = world.user(world.org())
    for text, title in (("the", "The"), ("…", "!")):
        passages.put(world, ann, text, title=title, embedding_model=library.services.embedder.model)
        assert search(library, ann, mode=mode).status_code == 200
