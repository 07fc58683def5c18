"""Attacks on snapshots: at another org's, by path, link and forged org; at private documents; with small
keys."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shared.config import Settings
from tests.actors import World, vector
from tests.conftest import People
from tests.isolation.victim_documents import INTERNALS
from tests.snapshot_client import Snapshots, detail, put, snapshot_client

SECRET = "the vault's code is 4417"


@pytest.fixture
def running(settings: Settings, world: World, tmp_path: Path) -> Iterator[Snapshots]:
    with snapshot_client(settings, world, f"file://{tmp_path}/snapshots") as one:
        yield one


@pytest.fixture
def persisted(running: Snapshots, people: People) -> Snapshots:
    """Acme's index, and its snapshot."""
    put(people.ann, "plans", external_id="a", title=SECRET)
    running.persist(people.ann, "plans")
    return running


def assert_refused(answer: Any, *statuses: int) -> None:
    assert answer.status_code in statuses, answer.text
    assert not INTERNALS.search(answer.text), answer.text
    assert "vault" not in answer.text


def test_another_org_s_snapshot_is_out_of_reach_by_path(persisted: Snapshots, people: People):
    acme = f"{people.acme.id}/storage"
    root = persisted.url.removeprefix("file://")
    back = f"..\\{acme}\\plans".replace("/", "\\")
    for path in (
        f"../{acme}/plans", f"./../{acme}/plans", f"{acme}/plans", f"x/../../{acme}/plans", back,
        f"{root}/{acme}/plans", f"{persisted.url}/{acme}/plans", f"..%2F{acme}%2Fplans", f"{acme}\0/plans",
        f"./.././{acme}/plans", f"....//{acme}/plans", "..", ".", f"~/../{acme}",
    ):  # fmt: skip
        assert_refused(persisted.post(people.bob, "load", "x", path=path), 400, 404)
    assert persisted.collections(people.bob) == set()


def test_a_link_out_of_the_org_s_folder_is_refused(persisted: Snapshots, people: People, tmp_path: Path):
    put(people.bob, "plans", external_id="bob's")
    root = tmp_path / "snapshots"
    own = root / people.bolt.id
    own.mkdir()
    (own / "link").symlink_to(root / people.acme.id / "storage")
    (own / "file").mkdir()
    (own / "file" / "manifest.json").symlink_to(root / people.acme.id / "storage" / "plans" / "manifest.json")
    for path in ("link/plans", "file"):
        assert_refused(persisted.post(people.bob, "load", "x", path=path), 400)
    before = persisted.folder(people.ann, "storage", "plans").manifest()
    assert_refused(persisted.post(people.bob, "persist", "plans", path="link"), 400)
    assert persisted.folder(people.ann, "storage", "plans").manifest() == before
    assert len(persisted.data(people.ann, "storage", "plans")) == 1


def test_a_link_in_place_of_the_org_s_folder_is_refused(persisted: Snapshots, people: People, tmp_path: Path):
    root = tmp_path / "snapshots"
    (root / people.bolt.id).symlink_to(root / people.acme.id)
    assert_refused(persisted.post(people.bob, "load", "plans"), 400)
    assert persisted.collections(people.bob) == set()


def test_a_manifest_cannot_name_data_elsewhere(persisted: Snapshots, people: People, tmp_path: Path):
    """Copied into one's own folder, by a user who may write there."""
    root = tmp_path / "snapshots"
    theirs, own = root / people.acme.id / "storage" / "plans", root / people.bolt.id / "storage" / "plans"
    own.mkdir(parents=True)
    manifest = (theirs / "manifest.json").read_text()
    (data,) = persisted.data(people.ann, "storage", "plans")
    elsewhere = f"../../../{people.acme.id}/storage/plans/{data}"
    for text in (manifest, manifest.replace(data, elsewhere)):
        (own / "manifest.json").write_text(text)
        assert_refused(persisted.post(people.bob, "load", "plans"), 409)
    (own / "manifest.json").write_text(manifest)
    (own / data).symlink_to(theirs / data)
    assert_refused(persisted.post(people.bob, "load", "plans"), 400)
    assert persisted.collections(people.bob) == set()


def test_a_snapshot_has_no_private_documents(persisted: Snapshots, people: People, tmp_path: Path):
    """Neither the persister's own, nor, for an admin, another user's."""
    put(people.ann, "plans", external_id="mine", title="ann alone", private=True)
    for who in (people.ann, people.ada):
        persisted.persist(who, "plans")
        persisted.load(people.alf, f"by {who.id}", path="storage/plans")
        assert [row[0] for row in persisted.documents(people.alf, f"by {who.id}")] == ["a"]


def test_a_private_index_is_neither_persisted_nor_loaded(running: Snapshots, people: People):
    own = f"notes:u:{people.ann.id}"
    put(people.ann, own, external_id="a")
    people.ann.rpc("rag_create_collection", {"name": "diary", "private": True})
    for who in (people.ann, people.ada):
        assert "private index" in detail(running.post(who, "persist", own), 400)
        assert "private index" in detail(running.post(who, "load", own, overwrite=True), 400)
    assert "private index" in detail(running.post(people.ann, "persist", "diary"), 400)
    assert_refused(running.post(people.ada, "persist", "diary"), 404)
    assert_refused(running.post(people.alf, "persist", own), 403)
    assert_refused(running.post(people.alf, "load", own), 400, 403)


def test_an_overwrite_cannot_remove_private_documents(persisted: Snapshots, people: People):
    document = people.alf.put([vector(1)], collection="plans", external_id="mine", private=True)
    persisted.load(people.ann, "plans", overwrite=True)
    assert [row[0] for row in persisted.documents(people.ann, "plans")] == ["a"]
    assert people.alf.request("GET", f"/api/v1/documents/{document}").status_code == 200
    assert people.ann.request("GET", f"/api/v1/documents/{document}").status_code == 404
