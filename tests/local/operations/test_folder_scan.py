"""Which files there are, and what they are called."""

import hashlib
import os
from pathlib import Path

import pytest

from local.errors import CommandError
from local.operations.folder_scan import SNIFF_BYTES, UnreadableFile, kinds_of, one_line, read_folder
from shared.clients.supabase_storage import MAX_BYTES as MAX_UPLOAD_BYTES
from shared.documents.documents import MAX_BYTES, external_id_of


def folder(at: Path, *names: str) -> Path:
    for name in names:
        (at / name).parent.mkdir(parents=True, exist_ok=True)
        (at / name).write_text(name)
    return at


def names(at: Path) -> list[str]:
    return [file.name for file in read_folder(at).files]


def test_every_supported_file_is_named_by_its_path(tmp_path: Path):
    here = folder(tmp_path / "docs", "b.txt", "a/guide.PDF", "a/deep/er/x.md", "old.doc", "Makefile")
    (here / "logo.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (here / "empty").touch()
    # Of a long one the beginning is looked at, which may end within a character.
    (here / "long.yaml").write_bytes(b"x" + "°".encode() * SNIFF_BYTES)
    documents = read_folder(here)
    assert [file.name for file in documents.files] == [
        "docs/Makefile", "docs/a/deep/er/x.md", "docs/a/guide.PDF", "docs/b.txt", "docs/long.yaml",
    ]  # fmt: skip
    assert [file.name for file in documents.unsupported] == ["docs/empty", "docs/logo.png", "docs/old.doc"]
    assert documents.prefix == "docs/"
    everything = read_folder(here, everything=True)
    assert (len(everything.files), everything.unsupported) == (8, [])
    alone = read_folder(here / "a" / "guide.PDF")
    assert [file.name for file in alone.files] == ["a/guide.PDF"]
    assert alone.prefix is None


def test_unsupported_files_are_listed_with_hints(tmp_path: Path):
    for name in ("a.PNG", "b.png", "c.mp3", "\x1b[1mcore", "d.doc"):
        (tmp_path / name).write_bytes(b"\0")
    folder(tmp_path, "a.md")
    unsupported = read_folder(tmp_path).unsupported
    assert kinds_of(unsupported) == (
        ".png 2, [1mcore 1, .mp3 1, .doc 1; "
        "pictures are read where tesseract is installed (--all sends them); "
        "sound and film are read where RAG_TRANSCRIPTION_KEY is set (--all sends them)"
    )
    for number in range(20):
        (tmp_path / f"x.{number}").write_bytes(b"\0")
    assert kinds_of(read_folder(tmp_path).unsupported).count(", ") == 12


def test_the_folder_may_be_given_in_any_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    here = folder(tmp_path / "docs", "a.md")
    (tmp_path / "link").symlink_to(here)
    monkeypatch.chdir(here)
    for path in (Path(), here, Path("../docs"), tmp_path / "link"):
        assert names(path) == ["docs/a.md"]


def test_hidden_files_and_links_out_of_the_folder_are_skipped(tmp_path: Path):
    here = folder(tmp_path / "docs", "a.md", ".env.txt", ".git/b.md", "c/.d/e.md")
    outside = folder(tmp_path / "outside", "secret.md")
    (here / "out.md").symlink_to(outside / "secret.md")
    (here / "out").symlink_to(outside)
    (here / "loop").symlink_to(here)
    (here / "gone.md").symlink_to(here / "nothing")
    (here / "in.md").symlink_to(here / "a.md")
    os.mkfifo(here / "pipe.md")
    assert names(here) == ["docs/a.md", "docs/in.md"]


def test_an_empty_folder_is_an_error(tmp_path: Path):
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    for path in (tmp_path, tmp_path / "missing", tmp_path / "a.png"):
        with pytest.raises(CommandError, match=r"nothing to read|No such file"):
            read_folder(path)


def test_a_too_large_or_deleted_file_is_not_sent(tmp_path: Path):
    here = folder(tmp_path / "docs", "a.md", "b.md")
    large, gone = read_folder(here).files
    large.path.write_bytes(b"x" * MAX_BYTES)
    assert large.digest() == f"sha256:{hashlib.sha256(b'x' * MAX_BYTES).hexdigest()}"
    large.path.write_bytes(b"x" * (MAX_BYTES + 1))
    with pytest.raises(UnreadableFile, match="6 MB") as refused:
        large.read()
    assert refused.value.code == "file_too_large"
    assert large.digest() == f"sha256:{hashlib.sha256(b'x' * (MAX_BYTES + 1)).hexdigest()}"
    with large.path.open("wb") as opened:
        opened.truncate(MAX_UPLOAD_BYTES + 1)
    with pytest.raises(UnreadableFile, match="100 MB") as refused:
        large.digest()
    assert refused.value.code == "file_too_large"
    gone.path.unlink()
    with pytest.raises(UnreadableFile, match="No such file") as refused:
        gone.read()
    assert refused.value.code == "unreadable_file"


def test_names_of_any_bytes_can_be_stored_and_printed(tmp_path: Path):
    here = folder(tmp_path / "docs", "\x1b]0;owned\x07.md", "two\nlines.md", "\u202etxt.md")
    Path(os.fsdecode(os.fsencode(here) + b"/\xff.md")).write_text("latin-1")
    results = [one_line(name) for name in names(here)]
    assert sorted(results) == ["docs/\\xff.md", "docs/]0;owned.md", "docs/two lines.md", "docs/txt.md"]
    assert all(name.encode() for name in names(here))


def test_a_too_long_name_is_replaced_by_its_digest():
    assert external_id_of("x" * 500) == "x" * 500
    assert len({external_id_of("x" * 501), external_id_of("x" * 502)}) == 2
    assert len(external_id_of("x" * 4000)) == 64
