"""Capacity of a deployment: the formula by hand, and the example of docs/capacity.md."""

import shlex
import sys

import pytest

from bench.capacity import PARTS, TERMS, Load, estimate, main
from local import ROOT

PAGE = (ROOT / "docs" / "capacity.md").read_text()
# A chunk of 100 words and 1,000 dimensions has 3, 2 and 5 kB in the three parts.
FIGURES = {
    f"{part}, {term}": value
    for part, values in zip(PARTS, ((1000, 0, 2), (0, 20, 0), (1000, 30, 1)), strict=True)
    for term, value in zip(TERMS, values, strict=True)
}


def test_the_estimate_by_hand():
    need = estimate(Load(1_000_000, 100, 1000), 10, 20, 0.02, FIGURES, rate=50)
    assert need.disk == pytest.approx(10)
    assert need.memory == pytest.approx(0.5 + 1.5 * 5)
    assert need.embedding_cost == pytest.approx(135 * 0.02)
    assert need.instance == "Large"


def test_small_orgs_have_no_hnsw_index():
    need = estimate(Load(1_000_000, 100, 1000), 400, 20, 0, FIGURES, rate=50)
    assert [need.disk, need.memory] == pytest.approx([7, 3.5])


def test_many_questions_need_processors_and_too_much_has_no_instance():
    few = Load(1000, 100, 1000)
    instances = [estimate(few, 1, rate, 0, FIGURES, 50).instance for rate in (1, 150, 10_000)]
    assert instances == ["Micro", "XL", None]


def test_the_example_of_the_page_is_what_the_command_prints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    (command,) = [line for line in PAGE.splitlines() if "-m bench.capacity " in line]
    monkeypatch.setattr(sys, "argv", shlex.split(command)[2:])
    main()
    assert capsys.readouterr().out.strip() in PAGE
