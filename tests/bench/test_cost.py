"""The cost of a thousand calls: the formula, and the example of docs/cost.md from the recorded figures."""

import shlex
import sys

import pytest

from bench.cost import CALLS, UNITS, Prices, main, measured
from local import ROOT

PAGE = (ROOT / "docs" / "cost.md").read_text()


def test_the_cost_of_a_thousand_calls_by_hand():
    prices = Prices(
        gb_second=2.0, request=0.5, embedding=3.0, input=4.0, output=5.0, embedding_ms=100, answer_ms=900,
        memory_gb=0.5,
    )  # fmt: skip
    figures = {"own time": 200.0, "embedding tokens": 10.0, "input tokens": 1000.0, "output tokens": 100.0}
    search = prices.of_a_thousand("search", figures | {"input tokens": 0, "output tokens": 0})
    assert search == pytest.approx({"compute": 300, "requests": 500, "embedding": 0.03, "model": 0})
    answer = prices.of_a_thousand("answer", figures)
    assert answer == pytest.approx({"compute": 1200, "requests": 500, "embedding": 0.03, "model": 4.5})


def test_the_example_of_the_page_is_what_the_command_prints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    (command,) = [line for line in PAGE.splitlines() if line.startswith("python -m bench.cost ")]
    monkeypatch.setattr(sys, "argv", shlex.split(command)[2:])
    main()
    assert capsys.readouterr().out.strip() in PAGE


def test_the_page_has_the_recorded_figures():
    for name, unit in UNITS.items():
        values = [f"{measured(call)[name]:.1f}" for call in CALLS]
        assert f"| {' | '.join(values)} |" in PAGE, (name, unit)
