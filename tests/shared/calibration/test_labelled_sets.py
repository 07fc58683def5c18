"""Labelled sets as they lie in folders."""

from pathlib import Path

import pytest

from bench.labelled_sets import judged
from shared.calibration.labelled_sets import InvalidSet, sets_in

CORPUS = '{"id": "1", "title": "One", "text": "A text."}\n{"id": "2", "title": "", "text": " "}\n'
QUERIES = '{"id": "a", "text": "What?", "meta": {"label": "answerable"}}\n{"id": "b", "text": "Who?"}\n'


def folder(path: Path) -> Path:
    path.mkdir()
    (path / "corpus.jsonl").write_text(CORPUS)
    (path / "queries.jsonl").write_text(QUERIES)
    (path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\na\t1\t1\nb\t1\t0\n")
    return path


def test_a_folder_is_a_set_or_holds_several(tmp_path: Path):
    one = folder(tmp_path / "one")
    folder(tmp_path / "two")
    assert [entry.name for entry in sets_in(one)] == ["one"]
    assert [entry.name for entry in sets_in(tmp_path)] == ["one", "two"]


def test_a_folder_without_a_set_is_an_error(tmp_path: Path):
    with pytest.raises(InvalidSet, match=r"no queries\.jsonl"):
        sets_in(tmp_path)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("queries.jsonl", '{"id": "a", "text": "What?"}\nWho?\n', r"queries\.jsonl, line 2: no JSON"),
        ("queries.jsonl", '{"text": "What?"}\n', "line 1: no object with an"),
        ("queries.jsonl", 2 * '{"id": "a", "text": "What?"}\n', 'line 2: the id "a" stands twice'),
        ("corpus.jsonl", '{"id": "1", "text": null}\n', 'line 1: "text" and "title" are texts'),
        ("qrels.tsv", "heading\na 1 1\n", "qrels.tsv, line 2: not a question's id"),
        ("qrels.tsv", "heading\na\t7\t1\n", 'line 2: corpus.jsonl has no "7"'),
        ("qrels.tsv", "heading\nc\t1\t1\n", 'line 2: queries.jsonl has no "c"'),
        ("corpus.jsonl", b"\xff\xfe{\x00", "no UTF-8"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, file: str, content: str | bytes, message: str):
    path = folder(tmp_path / "one")
    (path / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InvalidSet, match=message):
        sets_in(path)


def test_empty_documents_and_unanswerable_questions_are_excluded(tmp_path: Path):
    (labelled_set,) = sets_in(folder(tmp_path / "one"))
    assert [item.id for item in labelled_set.documents] == ["1"]
    assert [item.id for item in judged(labelled_set, 10)] == ["a"]
    assert [item.label for item in labelled_set.questions] == ["answerable", None]


def test_the_sample_of_a_set_is_reproducible_and_in_the_set_s_order(tmp_path: Path):
    path = folder(tmp_path / "one")
    names = [f"q{number}" for number in range(40)]
    (path / "queries.jsonl").write_text("".join(f'{{"id": "{name}", "text": "What?"}}\n' for name in names))
    (path / "qrels.tsv").write_text("heading\n" + "".join(f"{name}\t1\t1\n" for name in names))
    (labelled_set,) = sets_in(path)
    sample = [item.id for item in judged(labelled_set, 10)]
    assert len(sample) == 10
    assert sample == [item.id for item in judged(labelled_set, 10)] == sorted(sample, key=names.index)
    assert set(sample) < {item.id for item in judged(labelled_set, 20)}
