"""The demo's documents as they lie on disk, and the error for a malformed one."""

from pathlib import Path

import pytest

from local.demo_corpus import ORGS, org_id_of, read_folder
from local.errors import CommandError


def test_front_matter_sets_a_document_s_fields(tmp_path: Path):
    front = 'title = "Tea"\nsource_type = "faq"\nowner = "tomas@halden.example"'
    (tmp_path / "tea.md").write_text(f"+++\n{front}\n+++\nTea is ready after four minutes.")
    (tmp_path / "plain.txt").write_text("Plain text needs no front matter.")
    plain, tea = read_folder(tmp_path)
    assert (plain.document.title, plain.document.external_id, plain.owner) == ("plain", "plain.txt", None)
    assert (tea.document.title, tea.document.source_type, tea.document.private) == ("Tea", "faq", True)
    assert (tea.document.text, tea.owner) == ("Tea is ready after four minutes.", "tomas@halden.example")


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("bad.md", b"+++\ntitle = \n+++\nText.", "bad.md"),
        ("date.md", b"+++\ndate = 2026-01-01\n+++\nText.", "date needs a time"),
        ("latin.txt", b"caf\xe9", "latin.txt"),
        ("picture.png", b"", "no files that end in .md or .txt"),
    ],
)
def test_an_unreadable_file_is_named(tmp_path: Path, name: str, content: bytes, complaint: str):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CommandError, match=complaint):
        read_folder(tmp_path)


def test_an_org_is_found_by_its_short_name_or_its_id():
    assert org_id_of("halden") == org_id_of(ORGS["halden"]) == ORGS["halden"]
    with pytest.raises(CommandError, match="halden, brightwater"):
        org_id_of("nobody")
