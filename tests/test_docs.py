"""The documents say what is true: routes, settings, commands."""

import json
import re
from dataclasses import asdict
from importlib import import_module

from bench import eval_support, figures, readme_tables
from functions.server import SLUGS
from local import ROOT
from shared.config import Settings
from shared.generation.confidence import THRESHOLDS
from shared.generation.grounding.coverage import LIMITS

README = (ROOT / "README.md").read_text()
EXAMPLE = (ROOT / ".env.example").read_text()


def test_the_readme_lists_exactly_the_served_routes():
    served = {
        f"{method} {getattr(route, 'path', '')}"
        for module in SLUGS.values()
        for route in import_module(module).app.routes
        for method in getattr(route, "methods", set()) - {"HEAD"}
    }
    assert set(re.findall(r"`((?:GET|POST|PUT|PATCH|DELETE) /[^`]*)`", README)) == served


def test_every_row_of_routes_names_existing_tests():
    table = README[README.index("| route | also at |") :].split("\n\n")[0].split("\n")[2:]
    named = [re.findall(r"`(test_\w+\.py)`", row) for row in table]
    assert all(named)
    functions = ROOT / "tests" / "functions"
    assert all((functions / file).is_file() for files in named for file in files)


def test_the_example_environment_has_exactly_the_settings_with_their_defaults():
    listed = dict(re.findall(r"^(?:# )?([A-Z][A-Z_]+)=(.*)$", EXAMPLE, re.MULTILINE))
    assert set(listed) == {name.upper() for name in Settings.model_fields}
    for name, field in Settings.model_fields.items():
        default = "" if field.is_required() or field.default is None else field.default
        entry = listed[name.upper()]
        assert entry in (str(default), str(default).lower()) or float(entry) == default, name


def test_the_readme_s_table_names_every_setting():
    assert {name.upper() for name in Settings.model_fields} <= set(re.findall(r"`([A-Z_]+)`", README))


def test_every_make_target_in_the_documents_exists():
    makefile = (ROOT / "Makefile").read_text()
    documents = README + (ROOT / "CONTRIBUTING.md").read_text()
    for target in set(re.findall(r"\bmake (\w+)", documents)) - {"sure"}:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_nothing_in_this_project_is_security_definer():
    for path in (ROOT / "sql").rglob("*.sql"):
        assert "security definer" not in path.read_text().lower(), path.name


def test_the_thresholds_and_the_readme_s_figures_are_measured():
    measured = json.loads((ROOT / "bench" / "results" / "confidence_all-MiniLM-L6-v2.json").read_text())
    thresholds = THRESHOLDS[measured["model"]]
    assert (thresholds.high, thresholds.medium) == (measured["high"], measured["medium"])
    for label in ("answerable", "out_of_corpus", "adversarial_unanswerable"):
        shares = (measured["answered"][label], measured["answered_with_high_confidence"][label])
        answered, high = (f"{share:.1%}".replace("%", " %") for share in shares)
        assert f"| {answered} | {high} |" in README


def test_the_readme_shows_the_latest_figures():
    rows = figures.markdown()
    assert rows
    rows += readme_tables.match() + readme_tables.quality() + readme_tables.hybrid() + readme_tables.index()
    rows += readme_tables.graph() + readme_tables.graph_quality() + readme_tables.keyword_quality()
    assert [row for row in rows if row not in README] == []


def test_the_readme_shows_the_latest_figures_of_the_grounding_check():
    measured = json.loads(eval_support.RESULTS.read_text())
    assert measured["in_use"] == asdict(LIMITS)
    assert [row for row in eval_support.table() if row not in README] == []


def test_the_decisions_show_the_latest_measurements():
    contributing = (ROOT / "CONTRIBUTING.md").read_text()
    assert [row for row in readme_tables.storage() + readme_tables.cutover() if row not in contributing] == []
