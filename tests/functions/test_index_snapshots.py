"""index-snapshots over HTTP, on the real stack: an index is loaded as it was persisted, or not at all."""

import gzip
import json
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from functions import index_snapshots
from shared.clients.snapshot_paths import directory_of
from shared.config import LOCAL_MODEL, Settings
from shared.documents.snapshots import load_session
from tests.actors import Actor, World
from tests.conftest import People
from tests.functions.app_server import app_with
from tests.snapshot_client import Snapshots, detail, put, rewrite_manifest, snapshot_client
from tests.sql.passages import deployed_with
from tests.sql.schema_changes import schema_change


@pytest.fixture
def running(settings: Settings, world: World, tmp_path: Path) -> Iterator[Snapshots]:
    """In a store without folders; the other tests are in files."""
    with snapshot_client(settings, world, f"memory://{tmp_path.name}") as one:
        yield one
    files = fsspec.filesystem("memory")
    files.store.clear()
    files.pseudo_dirs[:] = [""]


@pytest.fixture
def local(settings: Settings, world: World, tmp_path: Path) -> Iterator[Snapshots]:
    with snapshot_client(settings, world, f"file://{tmp_path}/snapshots") as one:
        yield one


@pytest.fixture(params=["small", pytest.param("full", marks=pytest.mark.long)])
def chunk_count(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """A number of chunks that a load stores in several calls.

    The batches are small, or in the long tier those of the product.
    """
    if request.param == "full":
        return 1300
    monkeypatch.setattr(load_session, "CHUNKS_AT_ONCE", 16)
    monkeypatch.setattr(load_session, "MORE_CHUNKS_AT_ONCE", 64)
    monkeypatch.setattr(load_session, "BYTES_AT_ONCE", 1 << 18)
    return 120


def fill(who: Actor, index: str, chunks: int) -> None:
    """Two documents with every field, the second with that many chunks, and a third without a name."""
    put(
        who, index, range(3), external_id="a/ä", source_type="mail", uri="https://example.com/a",
        lang="fr-CA", occurred_at="2024-02-29T12:00:00.123456Z", origin="slack", author="Zoë", state="open",
        labels=["x", "y z"],
        metadata={"n": 1.5, "deep": {"list": [None, True, "ü\u2028\"\\"]}, "huge": 2**70},
    )  # fmt: skip
    put(who, index, range(300, 300 + chunks), external_id="long")
    put(who, index, range(0))


def test_a_loaded_index_equals_the_persisted_one_bit_for_bit(
    running: Snapshots, people: People, chunk_count: int
):
    fill(people.ann, "rag_index", chunk_count)
    confirmation = running.persist(people.ann, "rag_index", path="./custom_path")
    assert confirmation == "Successfully persisted index rag_index to ./custom_path/rag_index."
    confirmation = running.load(people.alf, "copy", path="./custom_path/rag_index")
    assert confirmation == "Successfully loaded index copy from ./custom_path/rag_index."
    documents = running.documents(people.ann, "rag_index")
    copied = running.documents(people.ann, "copy")
    assert [row[1:] for row in copied] == [row[1:] for row in documents]
    # The one without a name goes by its id, and keeps that.
    assert [row[0] for row in documents] == ["a/ä", "long", None]
    unnamed = "select id::text from rag.documents where external_id is null and org_id = %s"
    ((nameless,),) = running.world.sql(unnamed, people.acme.id)
    assert [row[0] for row in copied] == ["a/ä", "long", nameless]
    assert running.chunks(people.ann, "copy") == running.chunks(people.ann, "rag_index")
    assert len(running.chunks(people.ann, "copy")) == 3 + chunk_count


def test_a_snapshot_is_moved_to_another_org_by_a_copy_of_its_folder(
    local: Snapshots, people: People, world: World, tmp_path: Path
):
    """As docs/api/indexes.md says, also for another project."""
    put(people.ann, "i", range(3), external_id="a")
    put(people.ann, "i", range(0))
    local.persist(people.ann, "i", path="backup")
    home = world.org()
    kim = world.user(home)
    folders = tmp_path / "snapshots"
    shutil.copytree(folders / people.acme.id / "backup", folders / home.id / "backup")
    local.load(kim, "i", path="backup")
    unnamed = "select id::text from rag.documents where external_id is null and org_id = %s"
    ((nameless,),) = world.sql(unnamed, people.acme.id)
    assert [row[0] for row in local.documents(kim, "i")] == ["a", nameless]
    assert local.chunks(kim, "i") == local.chunks(people.ann, "i")
    creators = "select distinct created_by::text, owner_id from rag.documents where org_id = %s"
    assert world.sql(creators, home.id) == [(kim.id, None)]


def test_documents_with_equal_timestamps_keep_their_order(local: Snapshots, people: People):
    """As those of one request are: their order is that of their ids, and a copy has other ids."""
    for number in range(20):
        put(people.ann, "i", range(1), external_id=str(number))
    local.world.sql("update rag.documents set created_at = now() where org_id = %s", people.acme.id)
    local.persist(people.ann, "i")
    local.load(people.ann, "copy", path="storage/i")
    assert local.documents(people.ann, "copy") == local.documents(people.ann, "i")


NAMES = ["manifest.json", "a/b", "漢" * 255, "größe a:b?c#d"]


def test_every_index_name_has_its_own_folder(subtests: pytest.Subtests, local: Snapshots, world: World):
    for name in NAMES:
        with subtests.test(name=name):
            ann = world.user(world.org())
            put(ann, name, external_id=name)
            assert local.persist(ann, name).startswith(f"Successfully persisted index {name} to ")
            assert local.folder(ann, "storage").names() == [directory_of(name)]
            assert ann.rpc("rag_delete_named", {"collection": name, "names": [name]}).json() == [name]
            local.load(ann, name, overwrite=True)
            assert [row[0] for row in local.documents(ann, name)] == [name]


def test_an_existing_index_is_kept_without_overwrite(local: Snapshots, people: People):
    put(people.ann, "i", external_id="a")
    local.persist(people.ann, "i")
    put(people.ann, "i", external_id="b")
    message = "Index 'i' already exists. Use a different name or delete the existing index first."
    assert detail(local.post(people.alf, "load", "i"), 409) == message
    assert len(local.documents(people.ann, "i")) == 2
    assert local.load(people.alf, "i", overwrite=True) == "Successfully loaded index i from storage/i."
    assert [row[0] for row in local.documents(people.ann, "i")] == ["a"]
    assert local.collections(people.ann) == {"i"}


def test_load_reads_a_snapshot_from_the_path_of_persist(running: Snapshots, people: People):
    """KAITO's clients give both the same path, whatever the index is called by then."""
    put(people.ann, "i", external_id="a")
    assert running.persist(people.ann, "i", path="backup") == "Successfully persisted index i to backup/i."
    for name in ("i", "copy"):
        text = running.load(people.ann, name, path="backup", overwrite=True)
        assert text == f"Successfully loaded index {name} from backup."
        assert [row[0] for row in running.documents(people.ann, name)] == ["a"]
    put(people.ann, "j", external_id="b")
    running.persist(people.ann, "j", path="backup")
    running.load(people.ann, "j", path="backup", overwrite=True)
    assert [row[0] for row in running.documents(people.ann, "j")] == ["b"]
    text = detail(running.post(people.ann, "load", "third", path="backup"), 400)
    assert text == "path: backup has several snapshots, and none is called third. Name one of them."
    text = detail(running.post(people.ann, "load", "third", path="backup/i/x"), 404)
    assert text == "Path does not exist: backup/i/x"


def test_missing_indexes_and_snapshots_are_reported(running: Snapshots, people: People):
    message = detail(running.post(people.ann, "persist", "nothing"), 404)
    assert message == "No such index: 'nothing' exists."
    assert detail(running.post(people.ann, "load", "i"), 404) == "Path does not exist: storage/i"
    assert detail(running.post(people.ann, "load", "i", path="./a/b"), 404) == "Path does not exist: ./a/b"
    assert running.collections(people.ann) == set()


def test_a_second_persist_replaces_the_snapshot_its_data_and_old_incomplete_data(
    running: Snapshots, people: People
):
    put(people.ann, "i", external_id="a")
    running.persist(people.ann, "i")
    (first,) = running.data(people.ann, "storage", "i")
    put(people.ann, "i", external_id="b")
    # Another process may be writing the newer one.
    old, new = (f"data-{year}0101T000000Z-{'0' * 32}.jsonl.gz" for year in (2020, 2999))
    for name in (old, new):
        with running.folder(people.ann, "storage", "i").writing(name) as file:
            file.write(b"half a file")
    running.persist(people.ann, "i")
    left = running.data(people.ann, "storage", "i")
    assert (len(left), new in left) == (2, True)
    assert not {old, first} & set(left)
    running.load(people.ann, "copy", path="storage/i")
    assert len(running.documents(people.ann, "copy")) == 2


def test_an_empty_index_is_loaded_as_an_empty_index(local: Snapshots, people: People):
    request = {"name": "i", "description": "d", "metadata": {"a": 1}, "config": {"chunk_size": 64}}
    assert people.ann.rpc("rag_create_collection", request).status_code == 200
    local.persist(people.ann, "i")
    local.load(people.ann, "copy", path="storage/i")
    (copied,) = people.ann.rpc("rag_find_collection", {"collection": "copy"}).json()
    assert {field: copied[field] for field in request} == {**request, "name": "copy"}
    body = people.ann.request("GET", f"/api/v1/collections/{copied['id']}").json()
    assert body["document_count"] == 0


def test_a_function_without_an_object_store_reports_so(settings: Settings, people: People):
    with app_with(index_snapshots.app, settings) as app:
        for verb in ("persist", "load"):
            message = detail(app.post(f"/{verb}/i", headers=people.ann.headers()), 503)
            assert message == "This deployment has no snapshot storage. Please ask its operator for one."


def _without(folder: Any) -> None:
    folder.remove(next(name for name in folder.names() if name.startswith("data-")))


def _with_data(change: Callable[[bytes], bytes]) -> Callable[[Any], None]:
    def damage(folder: Any) -> None:
        name = next(name for name in folder.names() if name.startswith("data-"))
        with folder.reading(name) as file:
            content = file.read()
        with folder.writing(name) as file:
            file.write(change(content))

    return damage


def _with_another_title(data: bytes) -> bytes:
    """The data with a title of the same length, packed again: only the manifest's checksum differs."""
    lines = gzip.decompress(data)
    assert lines.count(b'"title":"a document"') == 1
    return gzip.compress(lines.replace(b'"title":"a document"', b'"title":"aaaaaaaaaa"'), mtime=0)


def _with_manifest(**changes: Any) -> Callable[[Any], None]:
    def damage(folder: Any) -> None:
        fields = json.loads(folder.manifest())
        folder.replace_manifest(json.dumps({**fields, **changes}).encode())

    return damage


DAMAGES: dict[str, tuple[Callable[[Any], None], str]] = {
    "no data": (_without, "lacks its data"),
    "a bit of the data": (_with_data(lambda data: data[:99] + bytes([data[99] ^ 1]) + data[100:]), "damaged"),
    "another title": (_with_data(_with_another_title), "its data do not match their checksum"),
    "no JSON": (lambda folder: folder.replace_manifest(b"{"), "damaged"),
    "another model by hand": (_with_manifest(embedding_model="other"), "manifest was changed"),
    "a newer format": (_with_manifest(version=2), "has format 2; this deployment reads up to 1"),
    "another format": (_with_manifest(format="zip"), "not a snapshot"),
    "another model": (
        lambda folder: rewrite_manifest(folder, embedding_model="other"),
        "embeddings are of other, but",
    ),
    "fewer documents": (lambda folder: rewrite_manifest(folder, documents=3), "fewer documents"),
    "more chunks": (lambda folder: rewrite_manifest(folder, chunks=1), "documents and chunks are not"),
}


def test_a_damaged_or_foreign_snapshot_is_refused_and_changes_nothing(
    subtests: pytest.Subtests, local: Snapshots, people: People
):
    ann = people.ann
    put(ann, "i", external_id="a")
    before = local.chunks(ann, "i")
    for fault, (damage, message) in DAMAGES.items():
        with subtests.test(fault=fault):
            local.persist(ann, "i")
            damage(local.folder(ann, "storage", "i"))
            for name, overwrite in (("i", True), ("new", False)):
                answer = local.post(ann, "load", name, path="storage/i", overwrite=overwrite)
                assert message in detail(answer, 409)
            assert local.chunks(ann, "i") == before
            assert local.collections(ann) == {"i"}


def test_a_snapshot_with_other_dimensions_is_refused_and_changes_nothing(local: Snapshots, people: People):
    put(people.ann, "i", external_id="a")
    local.persist(people.ann, "i")
    before = local.chunks(people.ann, "i")
    with deployed_with(local.world, embedding_dimensions={LOCAL_MODEL: 3072}):
        for name, overwrite in (("i", True), ("new", False)):
            answer = local.post(people.ann, "load", name, path="storage/i", overwrite=overwrite)
            assert "another number of dimensions" in detail(answer, 409)
    assert local.chunks(people.ann, "i") == before
    assert local.collections(people.ann) == {"i"}


def test_a_database_failure_during_a_load_leaves_the_old_index(
    local: Snapshots, people: People, chunk_count: int
):
    for number in range(3):
        title = "poison" if number == 2 else "t"
        put(people.ann, "i", range(chunk_count // 4), external_id=str(number), title=title)
    local.persist(people.ann, "i")
    before = local.chunks(people.ann, "i")
    plant = (
        "create function public.poisoned() returns trigger language plpgsql as "
        "$$ begin raise exception 'no space left at /secret' using errcode = '53100'; end $$; "
        "create trigger poisoned before insert on rag.documents for each row when (new.title = 'poison') "
        "execute function public.poisoned()"
    )
    with schema_change(local.world, plant, "drop function public.poisoned cascade"):
        for name, overwrite in (("i", True), ("new", False)):
            answer = local.post(people.ann, "load", name, path="storage/i", overwrite=overwrite)
            assert detail(answer, 500) == "The database could not answer. Please try again."
    assert local.chunks(people.ann, "i") == before
    assert local.collections(people.ann) == {"i"}


def test_an_aborted_load_is_cleaned_up_by_the_org_s_next_load(local: Snapshots, people: People):
    request = {"name": "i", "overwrite": False, "documents": 0, "collection": {}}
    left = people.ann.rpc("rag_begin_load", request).json()
    local.world.sql("update rag.collections set updated_at = now() - interval '2 hours' where id = %s", left)
    put(people.ann, "i", external_id="a")
    local.persist(people.ann, "i")
    local.load(people.alf, "copy", path="storage/i")
    assert local.collections(people.ann) == {"i", "copy"}


class Failing(MemoryFileSystem):  # type: ignore[misc]
    """A store that fails after so many bytes of data, or when the manifest is to be replaced."""

    protocol = "failing"
    room: ClassVar[int] = 0
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]

    def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        file = super()._open(path, mode, **options)
        write = file.write

        def limited(data: bytes) -> int:
            Failing.room -= len(data)
            if Failing.room < 0:
                raise TimeoutError("s3://secret-bucket is slow")
            written: int = write(data)
            return written

        if "w" in mode:
            file.write = limited
        return file

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **options: Any) -> None:
        if Failing.room < 1 << 19:
            raise TimeoutError("s3://secret-bucket is slow")
        super().pipe_file(path, value, mode, **options)


@pytest.mark.parametrize("room", [0, 500, 1 << 18])
def test_a_storage_failure_during_persist_keeps_the_older_snapshot(
    settings: Settings, world: World, people: People, room: int
):
    fsspec.register_implementation("failing", Failing, clobber=True)
    put(people.ann, "i", external_id="a")
    with snapshot_client(settings, world, "failing://snapshots") as running:
        Failing.room = 1 << 20
        running.persist(people.ann, "i")
        first = running.data(people.ann, "storage", "i")
        put(people.ann, "i", range(10, 30), external_id="b")
        Failing.room = room
        message = detail(running.post(people.ann, "persist", "i"), 500)
        assert message == "The snapshot storage could not answer. Please try again."
        Failing.room = 1 << 20
        assert running.data(people.ann, "storage", "i") == first
        running.load(people.ann, "copy", path="storage/i")
        assert [row[0] for row in running.documents(people.ann, "copy")] == ["a"]


@pytest.mark.parametrize("overwrite", [False, True])
def test_concurrent_loads_of_one_name_leave_one_index(local: Snapshots, people: People, overwrite: bool):
    put(people.ann, "i", range(50), external_id="a")
    local.persist(people.ann, "i")
    with ThreadPoolExecutor(3) as threads:
        requests = [
            threads.submit(local.post, who, "load", "copy", path="storage/i", overwrite=overwrite)
            for who in (people.ann, people.alf, people.ada)
        ]
        statuses = sorted(one.result().status_code for one in requests)
    assert statuses == ([200, 200, 200] if overwrite else [200, 409, 409])
    assert local.collections(people.ann) == {"i", "copy"}
    assert local.chunks(people.ann, "copy") == local.chunks(people.ann, "i")


def test_concurrent_persist_and_load_leave_valid_snapshots(local: Snapshots, people: People):
    put(people.ann, "i", range(50), external_id="a")
    local.persist(people.ann, "i")
    with ThreadPoolExecutor(6) as threads:
        persisted = [threads.submit(local.post, people.ann, "persist", "i") for _ in range(6)]
        loaded = [threads.submit(local.post, people.alf, "load", f"c{n}", path="storage/i") for n in range(4)]
    assert {one.result().status_code for one in persisted} == {200}
    # Whose data went away meanwhile is told so, and may try again.
    assert {one.result().status_code for one in loaded} <= {200, 409}
    local.load(people.ann, "copy", path="storage/i")
    for index in local.collections(people.ann) - {"i"}:
        assert local.chunks(people.ann, index) == local.chunks(people.ann, "i")
