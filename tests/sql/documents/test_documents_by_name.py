"""Documents by names, many at once, straight through PostgREST: stored, replaced, passed over, listed."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from shared.documents import named_collections
from shared.services import Services
from tests.actors import MODEL, Actor, World, vector
from tests.conftest import People

Row = dict[str, Any]


def new(name: str | None, text: str = "some text", *seeds: int, **fields: Any) -> Row:
    """A document with a chunk for each seed, all of which say its whole text."""
    chunks = [
        {"span_start": 0, "span_end": len(text), "token_count": 2, "embedding": vector(seed)}
        for seed in seeds
    ]
    own = {"external_id": name, "title": "a title", "content": text}
    return {**own, "embedding_model": MODEL, "chunks": chunks, **fields}


def put(actor: Actor, *documents: Row, collection: str = "docs", **more: Any) -> list[Row]:
    answer = actor.rpc("rag_put_documents", {"collection": collection, "documents": documents, **more})
    assert answer.status_code == 200, answer.text
    rows: list[Row] = answer.json()
    return rows


def refused(actor: Actor, *documents: Row) -> tuple[int, str]:
    answer = actor.rpc("rag_put_documents", {"collection": "docs", "documents": documents})
    return refusal(answer)


def listed(actor: Actor, **more: Any) -> Row:
    answer = actor.rpc("rag_list_named", {"collection": "docs", "limit": 100, **more})
    assert answer.status_code == 200, answer.text
    body: Row = answer.json()
    return body


def refusal(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["details"]


def test_several_documents_are_stored_in_one_call_and_reported_by_position(people: People, world: World):
    rows = put(people.ann, new("b", "text b", 1, 2), new(None, "text none", 3), new("a", "text a"))
    assert [(row["number"], row["replaced"], row["chunk_count"]) for row in rows] == [
        (1, False, 2), (2, False, 1), (3, False, 0),
    ]  # fmt: skip
    by_name = {row["document_id"]: row["content"] for row in people.ann.match(vector(1))}
    assert by_name == {rows[0]["document_id"]: "text b", rows[1]["document_id"]: "text none"}


def test_one_invalid_document_stores_none(people: People, world: World):
    put(people.ann, new("a", "old", 1))
    wrong = new("c", "short", 1)
    wrong["chunks"][0]["span_end"] = 6
    assert refused(people.ann, new("a", "new", 2), new("b", "x" * 3, 3, title=""))[0] == 400
    assert refused(people.ann, new("a", "new", 1), wrong) == (400, "span_outside")
    world.tier(people.acme, file_bytes=10)
    assert refused(people.ann, new("a", "new"), new("b", "x" * 11)) == (413, "file_too_large")
    assert [row["content"] for row in listed(people.ann)["documents"]] == ["old"]


def test_an_update_creates_no_document(people: People):
    put(people.ann, new("a", "old", 1))
    rows = put(people.ann, new("b", "new", 2), new("a", "new", 3), only_present=True)
    assert [(row["number"], row["replaced"]) for row in rows] == [(2, True)]
    assert [row["name"] for row in listed(people.ann)["documents"]] == ["a"]
    absent = {"collection": "nowhere", "documents": [], "only_present": True}
    assert refusal(people.ann.rpc("rag_put_documents", absent)) == (404, "collection_not_found")


def test_a_private_document_of_a_name_is_updated_before_the_shared_one(people: People):
    put(people.ann, new("a", "shared", 1))
    put(people.ann, new("a", "ann's own", 2, private=True))
    put(people.ann, new("a", "changed", 3), only_present=True)
    assert sorted(row["content"] for row in listed(people.ann)["documents"]) == ["changed", "shared"]
    put(people.alf, new("a", "by alf", 4), only_present=True)
    assert sorted(row["content"] for row in listed(people.ann)["documents"]) == ["by alf", "changed"]


def test_concurrent_stores_of_the_same_documents_store_them_once(people: People, world: World):
    def store(order: int) -> list[Row]:
        names = [str(number) for number in range(40)][::order]
        return put(people.ann, *(new(name, f"text {name}", int(name)) for name in names))

    with ThreadPoolExecutor(4) as pool:
        runs = list(pool.map(store, (1, -1, 1, -1)))
    assert {len(rows) for rows in runs} == {40}
    assert sum(not row["replaced"] for rows in runs for row in rows) == 40
    for table in ("documents", "chunks"):
        counted = world.sql(f"select count(*) from rag.{table} where org_id = %s", people.acme.id)
        assert counted == [(40,)]


def test_a_pending_version_is_older_than_a_synchronous_one(people: People, world: World):
    put(people.ann, new("a", "old", 1))
    home = people.ann.rpc("rag_find_collection", {"collection": "docs"}).json()[0]["id"]
    document = {"title": "a", "external_id": "a", "bytes": "eA==", "size_bytes": 1}
    assert people.ann.rpc("rag_add_document", {"collection_id": home, "document": document}).is_success
    put(people.ann, new("a", "new", 2))
    for rows in ("rag.jobs where kind = 'ingestion' and", "rag.originals where"):
        assert world.sql(f"select count(*) from {rows} org_id = %s", people.acme.id) == [(0,)]
    (row,) = listed(people.ann)["documents"]
    assert (row["status"], row["content"]) == ("completed", "new")


def test_a_tier_s_quota_counts_all_documents_of_a_call(people: People, world: World):
    world.tier(people.acme, documents=3)
    put(people.ann, new("a"), new("b"))
    assert refused(people.ann, new("c"), new("d")) == (429, "document_limit_reached")
    assert len(put(people.ann, new("a"), new("c"))) == 2
    # Other collections have room of their own.
    assert len(put(people.ann, new("d"), collection="second")) == 1


def test_the_listed_names_are_usable_by_the_caller(people: People):
    for name, more in (("b", {}), ("a", {}), ("own", {"private": True})):
        assert people.ann.rpc("rag_create_collection", {"name": name, **more}).status_code == 200
    mine = f"notes:u:{people.ann.id}"
    put(people.ann, collection=mine)
    assert people.ann.rpc("rag_list_names").json() == sorted(["a", "b", "own", mine])
    assert people.alf.rpc("rag_list_names").json() == ["a", "b"]
    # An admin names a user's own by its name alone, and sees a private one by its id.
    assert people.ada.rpc("rag_list_names").json() == sorted(["a", "b", mine])


def test_only_a_complete_last_segment_makes_a_name_a_user_s(people: People, world: World):
    owner = "select owner_id::text from rag.collections where org_id = %s and name = %s"
    for end in ("u:{ann}", "x:u:{ann}:y", "U:{ann}", "xu:{ann}"):
        name = f"notes:{end.format(ann=people.ann.id)}"
        put(people.ann, collection=name)
        owned = people.ann.id if end.startswith("u:") else None
        assert world.sql(owner, people.acme.id, name) == [(owned,)], end


def test_the_size_of_a_page_is_limited(people: People, services: Services):
    """Callers ask again for the rest. A text has at most 100,000 characters, and never a negative number."""
    texts = ["\N{GRINNING FACE}" * 120_000 + str(number) for number in range(30)]
    for number, text in enumerate(texts):
        put(people.ann, new(f"{number:02}", text), collection="docs")
    page = listed(people.ann)
    assert (len(page["documents"]), page["total"]) == (21, 30)
    assert {len(row["content"]) for row in page["documents"]} == {100_000}
    assert all(row["is_truncated"] for row in page["documents"])
    assert {row["content"] for row in listed(people.ann, characters=-1)["documents"]} == {""}
    rows, total = named_collections.documents(services.database, people.ann.principal, "docs", 25, 2, 100_000)
    assert ([row["name"] for row in rows], total) == ([f"{number:02}" for number in range(2, 27)], 30)
