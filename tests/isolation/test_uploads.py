"""Attacks on large files: on tickets for uploads, on objects straight through Storage, on their removal."""

import time
from typing import Any
from uuid import uuid4

import pytest
from itsdangerous import URLSafeSerializer

from local import access_tokens
from shared.access.download_links import PURPOSE as LINKS
from shared.access.token_signer import Signer
from shared.documents.direct_uploads import PURPOSE
from tests.actors import Actor, World
from tests.conftest import People
from tests.isolation.test_documents import add_text, assert_not_found, collection
from tests.isolation.victim_documents import INTERNALS
from tests.sql.schema_changes import schema_change
from tests.storage_server import BUCKET
from tests.upload_client import Uploads, page

SECRET = page("The code of the vault door is ACME-4417.")


def assert_nothing_brought(world: World, people: People, count: int = 0) -> None:
    statement = "select count(*) from rag.documents where org_id = any (%s::uuid[])"
    assert world.sql(statement, [people.acme.id, people.bolt.id]) == [(count,)]


def shared(uploading: Uploads, people: People) -> str:
    """The path of an object that all of acme may read."""
    return uploading.path_of(uploading.bring(people.ann, collection(people.ann), SECRET))


def private(uploading: Uploads, people: People) -> str:
    """And of one that ann and the admin may."""
    row = uploading.bring(people.ann, collection(people.ann, name="own"), SECRET, private=True)
    return uploading.path_of(row)


def expected_path(uploading: Uploads, actor: Actor, home: str) -> str:
    """The path of an upload that has begun."""
    begun = uploading.begin(actor, home).json()["upload_url"]
    return str(begun.partition(f"{BUCKET}/")[2].partition("?")[0])


# -- tickets ------------------------------------------------------------------------------------------


def test_another_user_s_or_a_former_member_s_ticket_is_refused(
    uploading: Uploads, people: People, world: World
):
    home = collection(people.ann)
    tickets = [uploading.put(people.ann, home, SECRET) for _ in range(2)]
    for thief in (people.alf, people.ada, people.bob, people.kim):
        assert_not_found(uploading.finish(thief, tickets[0]), "upload_not_found")
    assert_nothing_brought(world, people)
    assert uploading.finish(people.ann, tickets[0]).status_code == 202
    world.sql("delete from rag.members where user_id = %s", people.ann.id)
    assert uploading.finish(people.ann, tickets[1]).json()["error"]["code"] == "no_org"
    assert_nothing_brought(world, people, 1)


def edited(ticket: str, place: int, value: Any) -> str:
    """Another payload with the signature of a right one; places: [user, path, expires, upload]."""
    payload, _, signature = ticket.rpartition(".")
    serializer = URLSafeSerializer("any key")
    values = serializer.load_payload(payload.encode())
    values[place] = {**values[place], **value} if isinstance(value, dict) else value
    return f"{serializer.dump_payload(values).decode()}.{signature}"


def test_an_edited_or_forged_ticket_is_refused(uploading: Uploads, people: People, world: World):
    home, bobs = collection(people.ann), collection(people.bob)
    ticket = uploading.put(people.ann, home, SECRET)
    payload, _, signature = ticket.rpartition(".")
    texts = [people.bob.id, f"{people.acme.id}/x", time.time() + 60, bobs, {}]
    other = Signer("another deployment's secret, of thirty-two", "https://x.example/auth/v1", "authenticated")
    signer = uploading.services.require_signer()
    forged = [
        edited(ticket, 0, people.bob.id), edited(ticket, 2, time.time() + 10**6), edited(ticket, 1, "a/b"),
        edited(ticket, 3, bobs), edited(ticket, 4, {"private": True}),
        payload, f"{payload}.", f".{signature}", f"{payload}.{signature[:-2]}", f"{ticket}.{signature}",
        "x", "é.é", "{}.{}",
        other.sign(PURPOSE, texts), signer.sign(LINKS, texts), people.bob.token(),
    ]  # fmt: skip
    for carried in forged:
        for who in (people.bob, people.ann):
            answer = uploading.finish(who, carried)
            assert answer.status_code == 400, (carried, answer.text)
            assert answer.json()["error"]["code"] == "invalid_upload"
            assert not INTERNALS.search(answer.text)
    assert_nothing_brought(world, people)


# -- paths --------------------------------------------------------------------------------------------


def test_a_name_through_postgrest_cannot_change_the_path(
    subtests: pytest.Subtests, people: People, uploading: Uploads
):
    home = collection(people.ann)
    for name in [
        "../x", "a/b.pdf", "a%2fb.pdf", "..", "", ".x", "\u00e9.pdf", "a b.pdf", "x" * 101, "a\nb.pdf",
        "a.pdf\n",
    ]:  # fmt: skip
        with subtests.test(name=name):
            fields = {"collection_id": home, "name": name, "size_bytes": 1}
            answer = people.ann.rpc("rag_begin_upload", fields)
            assert answer.status_code == 400, answer.text


def test_another_user_s_path_through_postgrest_is_refused(uploading: Uploads, people: People, world: World):
    """No user makes a readable document of an object that another has uploaded."""
    taken = private(uploading, people)
    ann_home, alf_home = collection(people.ann), collection(people.alf, name="alf")
    uploading.put(people.ann, ann_home, page("Still to be brought."))
    (expected,) = uploading.paths - {taken}
    foreign = collection(people.bob)
    uploading.put(people.bob, foreign, page("Bolt's."))
    (bolts,) = uploading.paths - {taken, expected}
    thieves = [(people.alf, ann_home), (people.alf, alf_home), (people.ada, ann_home)]
    attempts = [(thief, home, path) for thief, home in thieves for path in (taken, expected, bolts)]
    attempts += [(people.bob, foreign, path) for path in (taken, expected)]
    # Her own, in another collection than she was told; and paths that are none.
    own = collection(people.ann, name="other")
    attempts += [(people.ann, own, expected), (people.ann, own, bolts), (people.ann, own, taken)]
    prefix = f"{people.acme.id}/{own}/{people.ann.id}"
    attempts += [
        (people.ann, own, path)
        for path in (f"{prefix}/{uuid4()}/x.pdf", f"{prefix}/../x", "", "x", f"{bolts}\n", f"{expected}/x")
    ]
    for thief, home, path in attempts:
        document = {"title": "x", "path": path, "size_bytes": 1}
        answer = thief.rpc("rag_add_document", {"collection_id": home, "document": document})
        assert answer.status_code == 404, (thief, home, path, answer.text)
        assert "ACME" not in answer.text
    assert_nothing_brought(world, people, 1)


def test_the_tables_behind_the_functions_are_unreachable(uploading: Uploads, people: People, world: World):
    """Straight in SQL: a row of one's own with another's path gives nothing away."""
    taken = private(uploading, people)
    home = collection(people.alf, name="alf")
    document = add_text(people.alf, home)
    changed = "update rag.originals set path = %s, bytes = null, content_hash = null where document_id = %s"
    with pytest.raises(Exception, match="row-level security"):
        world.as_user(people.alf, changed, taken, document)
    expected = (
        "insert into rag.object_removals (org_id, path, collection_id, owner_id, expected_until) "
        "values (%s, %s, %s, %s, now() + interval '1 hour')"
    )
    own = f"{people.acme.id}/{home}/{people.ann.id}/{uuid4()}/x"
    for actor in (people.alf, people.bob):
        with pytest.raises(Exception, match="row-level security"):
            world.as_user(actor, expected, people.acme.id, own, home, actor.id)
    elsewhere = f"{people.bolt.id}/{home}/{people.alf.id}/{uuid4()}/x"
    with pytest.raises(Exception, match="check constraint"):
        world.as_user(people.alf, expected, people.acme.id, elsewhere, home, people.alf.id)


# -- straight through Storage -------------------------------------------------------------------------


def assert_hidden(uploading: Uploads, path: str, token: str | None) -> None:
    """Neither its content, nor a link to it, nor that it is there."""
    for method, route, body in (
        ("GET", f"object/authenticated/{BUCKET}/{path}", None),
        ("GET", f"object/info/{BUCKET}/{path}", None),
        ("POST", f"object/sign/{BUCKET}/{path}", {"expiresIn": 60}),
    ):
        answer = uploading.storage(method, route, token, body)
        assert answer.status_code == 400, answer.text
        assert answer.json()["error"] in ("not_found", "Unauthorized")
        assert "ACME" not in answer.text
    listed = uploading.storage("POST", f"object/list/{BUCKET}", token, {"prefix": ""})
    assert listed.status_code == 400 or path not in listed.text


def assert_read(uploading: Uploads, path: str, token: str) -> None:
    answer = uploading.storage("GET", f"object/authenticated/{BUCKET}/{path}", token)
    assert answer.status_code == 200
    assert answer.content == SECRET


def test_an_object_is_out_of_reach_of_those_who_do_not_see_its_document(uploading: Uploads, people: People):
    """Of a private document, of a shared one, and of an upload without a document."""
    uploading.put(people.ann, collection(people.ann, name="pending"), SECRET)
    (pending,) = uploading.paths
    strangers = [people.bob.token(), people.sam.token(), None, people.ann.stack.anon_key]
    for path, readers, others in (
        (private(uploading, people), (people.ann, people.ada),
         [people.alf.token(), people.kim.token(), people.ann.key_token(scopes=["retrievals:read"])]),
        (shared(uploading, people), (people.ann, people.alf, people.kim),
         [people.kim.token(rag={"org": people.bolt.id})]),
        (pending, (people.ann,), [people.alf.token(), people.ada.token()]),
    ):  # fmt: skip
        for token in (*strangers, *others):
            assert_hidden(uploading, path, token)
        for actor in readers:
            assert_read(uploading, path, actor.token())


def test_storage_accepts_only_issued_paths(uploading: Uploads, people: People):
    path = shared(uploading, people)
    home = path.split("/")[1]
    expected = expected_path(uploading, people.ann, home)
    own = f"{people.acme.id}/{home}/{people.ann.id}"
    places = [
        f"{own}/{uuid4()}/x.pdf", f"{own}/x.pdf", "x.pdf", f"{people.bolt.id}/x.pdf", f"{expected}/x",
        expected.replace("/kiln", "/%2e%2e/kiln"), f"{own}/%2e%2e/x", f"{own}%2f{uuid4()}%2fx",
        f"{own}/a%00b",
    ]  # fmt: skip
    for place in places:
        for route in (f"object/{BUCKET}/{place}", f"object/upload/sign/{BUCKET}/{place}"):
            for actor in (people.ann, people.alf, people.bob):
                answer = uploading.storage("POST", route, actor.token(), b"poison")
                assert answer.status_code == 400, (route, answer.text)
    for actor in (people.alf, people.ada, people.bob, people.sam):
        answer = uploading.storage("POST", f"object/{BUCKET}/{expected}", actor.token(), b"poison")
        assert answer.status_code == 400, answer.text
    assert uploading.paths == {path}


def test_objects_cannot_be_overwritten_moved_or_deleted_in_storage(uploading: Uploads, people: People):
    path = shared(uploading, people)
    home = path.split("/")[1]
    expected = expected_path(uploading, people.ann, home)
    for actor in (people.ann, people.alf, people.ada, people.bob):
        token = actor.token()
        for headers in ({"x-upsert": "true"}, {}):
            answer = uploading.storage("POST", f"object/{BUCKET}/{path}", token, b"poison", **headers)
            assert answer.status_code == 400, answer.text
        for source, target in ((path, expected), (path, f"{people.bolt.id}/x")):
            places = {"bucketId": BUCKET, "sourceKey": source, "destinationKey": target}
            assert uploading.storage("POST", "object/move", token, places).status_code == 400
        assert uploading.storage("DELETE", f"object/{BUCKET}", token, {"prefixes": [path]}).json() == []
    assert_read(uploading, path, people.ann.token())


def test_an_expired_upload_accepts_no_object(uploading: Uploads, people: People, world: World):
    """ann sends the object straight to Storage, without the signed URL."""
    home = collection(people.ann)
    for expired, status in ((True, 400), (False, 200)):
        path = expected_path(uploading, people.ann, home)
        if expired:
            world.sql("update rag.object_removals set expected_until = now() - interval '1 second'")
        answer = uploading.storage("POST", f"object/{BUCKET}/{path}", people.ann.token(), b"poison")
        assert answer.status_code == status, answer.text
    assert uploading.paths == {path}


def test_a_permissive_project_policy_does_not_open_the_bucket(
    uploading: Uploads, people: People, world: World
):
    path = private(uploading, people)
    plant = 'create policy "all is open" on storage.objects for all using (true) with check (true)'
    restore = """drop policy "all is open" on storage.objects;
        delete from storage.objects where bucket_id = 'theirs';
        delete from storage.buckets where id = 'theirs'"""
    with schema_change(world, plant, restore):
        for token in (people.alf.token(), people.bob.token(), people.ann.stack.anon_key):
            assert_hidden(uploading, path, token)
            poisoned = f"object/{BUCKET}/{path}"
            answer = uploading.storage("POST", poisoned, token, b"poison", **{"x-upsert": "true"})
            assert answer.status_code == 400
            removed = uploading.storage("DELETE", f"object/{BUCKET}", token, {"prefixes": [path]})
            assert removed.json() == []
        # The project's other buckets are its own affair.
        world.sql("insert into storage.buckets (id, name) values ('theirs', 'theirs')")
        assert uploading.storage("POST", "object/theirs/a", people.bob.token(), b"x").status_code == 200
        assert uploading.storage("GET", "object/authenticated/theirs/a", people.alf.token()).content == b"x"


def test_a_permissive_project_policy_does_not_make_the_bucket_public(people: People, world: World):
    plant = 'create policy "all is open" on storage.buckets for all using (true) with check (true)'
    with schema_change(world, plant, 'drop policy "all is open" on storage.buckets'):
        assert world.as_user(people.bob, "select id from storage.buckets") == [(BUCKET,)]
        for change in ("update storage.buckets set public = true", "delete from storage.buckets"):
            assert world.as_user(people.bob, f"{change} returning id") == []


# -- removals -----------------------------------------------------------------------------------------


def test_the_worker_cannot_be_made_to_delete_a_document_s_object(
    uploading: Uploads, people: People, world: World
):
    path = shared(uploading, people)
    home = path.split("/")[1]
    removal = (
        "insert into rag.object_removals (org_id, path, collection_id, owner_id) values (%s, %s, %s, %s)"
    )
    with pytest.raises(Exception, match="row-level security"):
        world.as_user(people.bob, removal, people.acme.id, path, home, None)
    with pytest.raises(Exception, match="check constraint"):
        world.as_user(people.bob, removal, people.bolt.id, path, home, None)
    world.as_user(people.alf, removal, people.acme.id, path, home, None)
    assert uploading.remove() == 0
    assert uploading.paths == {path}
    assert world.sql("select count(*) from rag.object_removals") == [(0,)]


def test_object_deletions_cannot_be_prevented(uploading: Uploads, people: People, world: World):
    row = uploading.bring(people.ann, collection(people.ann), SECRET)
    people.ann.request("DELETE", f"/api/v1/documents/{row['id']}")
    world.as_user(people.ann, "delete from rag.object_removals")
    assert uploading.remove() == 1
    assert uploading.paths == set()


def test_a_deletion_token_deletes_one_object_and_nothing_else(uploading: Uploads, people: People):
    path, other = private(uploading, people), shared(uploading, people)
    stack = people.ann.stack
    token = access_tokens.user_token(stack.signing_key, stack.url, "", sub=None, rag={"object": path})
    assert_hidden(uploading, other, token)
    for function, text in (
        ("rag_list_collections", {}), ("rag_search", {"query_text": "vault", "mode": "keyword"}),
        ("rag_get_original", {"document_id": str(uuid4())}),
    ):  # fmt: skip
        answer = people.ann.rpc(function, text, token=token)
        assert "ACME" not in answer.text
        assert answer.status_code == 404 or answer.json() in ([], {"total": 0, "collections": []}), (
            answer.text
        )
    gone = uploading.storage("DELETE", f"object/{BUCKET}", token, {"prefixes": [path, other]}).json()
    assert gone == [{"name": path}]
    assert uploading.paths == {other}
