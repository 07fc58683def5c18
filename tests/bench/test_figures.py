"""Records of measured figures."""

from pathlib import Path

import pytest

from bench import figures
from bench.figures import Figure


@pytest.fixture(autouse=True)
def empty_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "RESULTS", tmp_path / "results.jsonl")


def record(part: str, *names: str, commit: str, labelled_sets: tuple[str, ...] = ()) -> None:
    measured = [Figure(name, 1.0, "") for name in names]
    figures.record(part, {"commit": commit}, measured, labelled_sets)


def recorded(part: str) -> dict[str, str]:
    return {result["name"]: result["machine"]["commit"] for result in figures.results(part)}


def test_a_part_replaces_its_own_figures_only():
    record("put", "rows", "bytes", commit="a")
    record("work", "rows", commit="a")
    record("put", "rows", commit="b")
    assert (recorded("put"), recorded("work")) == ({"rows": "b"}, {"rows": "a"})


def test_figures_of_labelled_sets_that_were_not_measured_remain():
    record("quality", "gain, work: mean", "gain, work_two: mean", "gain, mean of the sets", commit="a")
    record("quality", "gain, work: at most", "gain, mean of the sets", commit="b", labelled_sets=("work",))
    assert recorded("quality") == {
        "gain, work_two: mean": "a", "gain, work: at most": "b", "gain, mean of the sets": "b",
    }  # fmt: skip
