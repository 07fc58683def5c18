"""The charts of docs/images are drawn from the recorded results."""

from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

from bench import chart_growth, chart_tenants
from bench.bar_chart import Panel, draw_svg


@pytest.mark.parametrize("chart", [chart_growth, chart_tenants])
def test_a_chart_shows_the_recorded_results(
    chart: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    published = chart.CHART.read_text()
    monkeypatch.setattr(chart, "CHART", tmp_path / "chart.svg")
    chart.write()
    assert (tmp_path / "chart.svg").read_text() == published


def test_a_bar_is_as_high_as_its_share_of_the_highest():
    svg = draw_svg("times", ("before", "after"), [Panel.of("ms", {"one": (2.0, 4.0), "two": (None, 1.0)})])
    bars = [mark for mark in ElementTree.fromstring(svg).iter() if mark.get("rx")]  # noqa: S314  # our own
    assert [(bar.get("class"), bar.get("height")) for bar in bars] == [("a", "85"), ("b", "170"), ("b", "42")]
