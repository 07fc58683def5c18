"""A snapshot's form, without a database: folders' names, embeddings, damage of every kind, bombs."""

import gzip
import hashlib
import io
import json
import math
import struct
import tracemalloc
from base64 import b64encode
from collections.abc import Iterable
from typing import Any

import pytest

from shared.clients.snapshot_paths import DATA, MAX_SEGMENT, directory_of, segments_of
from shared.clients.snapshot_store import Store
from shared.config import read_settings
from shared.documents.snapshots import jsonl as snapshot
from shared.documents.snapshots.jsonl import new_data_name, records, to_database
from shared.documents.snapshots.manifest import Data, Manifest
from shared.errors import ConfigurationError, InvalidRequest, SnapshotRefused

DOCUMENT: dict[str, Any] = {
    "name": "a", "source_type": "doc", "title": "t", "uri": None, "lang": None, "occurred_at": None,
    "origin": None, "author": None, "state": None, "labels": [], "metadata": {}, "content": "text",
    "filename": None, "content_type": None, "size_bytes": None,
    "processing_info": {}, "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z",
    "embedding_model": "m", "chunks": 1,
}  # fmt: skip
CHUNK: dict[str, Any] = {
    "span_start": 0, "span_end": 4, "token_count": 1, "metadata": {},
    "embedding": b64encode(struct.pack(">2e", 1, 0.5)).decode(),
}  # fmt: skip


def manifest_of(data: bytes, documents: int, chunks: int, **changes: Any) -> Manifest:
    """One whose checksums are right."""
    results = Data(file=new_data_name(), sha256=hashlib.sha256(data).hexdigest(), bytes=len(data))
    fields = {
        "index_name": "i", "collection": {}, "embedding_model": "m", "documents": documents, "chunks": chunks,
        "created_at": "2026-01-01T00:00:00Z", "data": results, **changes,
    }  # fmt: skip
    return Manifest(**fields)


def read_lines(lines: Iterable[bytes], documents: int = 1, chunks: int = 1) -> list[Any]:
    text = b"".join(lines)
    data = gzip.compress(text)
    return list(records(io.BytesIO(data), manifest_of(data, documents, chunks)))


def line(kind: str, fields: dict[str, Any]) -> bytes:
    return json.dumps({kind: fields}).encode() + b"\n"


NO_RECORDS = {
    "no JSON": b"{\n",
    "a list": b"[]\n",
    "two records": json.dumps({"document": DOCUMENT, "chunk": CHUNK}).encode() + b"\n",
    "a record of no kind": line("note", {}),
    "a field too many": line("document", {**DOCUMENT, "owner_id": "me"}),
    "a field too few": line("document", {"name": "a"}),
    "NaN": line("document", {**DOCUMENT, "metadata": {"a": math.nan}}),
    "a number that is none": b'{"document": {"metadata": {"a": 1e400}}}\n',
    "half a character": line("document", {**DOCUMENT, "content": "\ud800"}),
    "a number for a text": line("document", {**DOCUMENT, "title": 1}),
    "brackets without end": b"[" * 100_000 + b"\n",
}
TOO_LONG = b64encode(b"\1" * 6146).decode()
NO_EMBEDDINGS = {
    f"the embedding {embedding[:8]}": line("document", DOCUMENT)
    + line("chunk", {**CHUNK, "embedding": embedding})
    for embedding in ("", "!", "AA==", "AAAA", b64encode(b"\x7c\0").decode(), TOO_LONG)
}


def test_a_malformed_line_is_refused(subtests: pytest.Subtests):
    for fault, text in {**NO_RECORDS, **NO_EMBEDDINGS}.items():
        with subtests.test(fault), pytest.raises(SnapshotRefused, match="a line cannot be read"):
            read_lines([text])


def test_counts_other_than_the_manifest_s_are_refused(subtests: pytest.Subtests):
    document, chunk, other = (
        line(*fields)
        for fields in (("document", DOCUMENT), ("chunk", CHUNK), ("document", {**DOCUMENT, "name": "b"}))
    )
    for lines in ([chunk], [document, other], [document, chunk, chunk], [document]):
        refused = pytest.raises(SnapshotRefused, match=r"documents (and|or) chunks")
        with subtests.test(lines=len(lines)), refused:
            read_lines(lines)


def test_an_overlong_line_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(snapshot, "MAX_LINE", 1 << 20)
    tracemalloc.start()
    with pytest.raises(SnapshotRefused, match="too long"):
        read_lines(b"x" * (1 << 20) for _ in range(50))
    tracemalloc.stop()


def test_a_decompression_bomb_is_abandoned_at_its_first_line():
    """16 MB of line ends in 16 KB."""
    data = gzip.compress(b"\n" * (16 << 20))
    manifest = manifest_of(data, 1, 1)
    tracemalloc.start()
    with pytest.raises(SnapshotRefused):
        list(records(io.BytesIO(data), manifest))
    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    tracemalloc.stop()


def test_the_database_s_byte_order_is_converted():
    text = b64encode(b"\x3c\x00\x40").decode()
    assert to_database(text).startswith("[1,2,0,0,")


INDEXES = [
    "rag_index", "", ".", "..", "a.b", "a/b", "a%2Fb", "a b", "Ä", "~", "漢" * 255, f"{'漢' * 254}字", "A",
]  # fmt: skip


def test_every_index_has_its_own_safe_folder():
    folders = [directory_of(index) for index in INDEXES]
    assert len(set(folders)) == len(INDEXES)
    for folder in set(folders) - {""}:
        assert len(folder.encode()) <= MAX_SEGMENT
        assert not DATA.fullmatch(folder)
        if "~" not in folder:
            assert segments_of(folder) == (folder,)
    assert directory_of("rag_index") == "rag_index"


def test_a_path_outside_the_root_is_refused(subtests: pytest.Subtests):
    cases: list[str] = [
        "", "/", "/etc", "..", "a/../b", "a//b", "a/", "a\\b", "C:", "s3://bucket/x", "a\nb", "~", "a?b",
        "a" * 256, "a/" * 400 + "a", "\u202ea",
    ]  # fmt: skip
    for path in cases:
        with subtests.test(path=path), pytest.raises(InvalidRequest):
            segments_of(path)


def test_a_path_below_the_root_is_accepted():
    cases: list[tuple[str, tuple[str, ...]]] = [
        ("a", ("a",)), ("./a", ("a",)), ("a/b c/ü", ("a", "b c", "ü")), (".", ()), ("./", ()),
        ("...", ("...",)), (".a", (".a",)), ("%2e%2e", ("%2e%2e",)),
    ]  # fmt: skip
    assert [(path, segments_of(path)) for path, _ in cases] == cases


def test_without_persistent_files_there_is_no_store(subtests: pytest.Subtests):
    for variable in ("AWS_LAMBDA_FUNCTION_NAME", "K_SERVICE"):
        for url in ("file:///tmp/x", "local:///tmp/x", "memory://x"):
            with subtests.test(variable=variable, url=url), pytest.MonkeyPatch.context() as monkeypatch:
                monkeypatch.setenv("SUPABASE_URL", "http://127.0.0.1")
                monkeypatch.setenv("SUPABASE_ANON_KEY", "a")
                monkeypatch.setenv("RAG_SNAPSHOT_URL", url)
                assert read_settings().rag_snapshot_url == url
                monkeypatch.setenv(variable, "x")
                with pytest.raises(
                    ConfigurationError, match="RAG_SNAPSHOT_URL: this platform keeps no files"
                ):
                    read_settings()
                monkeypatch.setenv("RAG_SNAPSHOT_URL", "s3://bucket/x")
                assert read_settings().rag_snapshot_url == "s3://bucket/x"


def test_a_store_whose_package_is_missing_stops_the_start():
    with pytest.raises(ConfigurationError, match="RAG_SNAPSHOT_URL"):
        Store("gs://bucket/x")
    with pytest.raises(ConfigurationError, match="RAG_SNAPSHOT_URL"):
        Store("nosuch://x")
