"""Definitions and results of the planted defects: each fits the sources and the tests."""

import json

from local import ROOT
from tests.mutation.definitions import FOLDER, definition_errors, load, source_texts


def test_each_planted_defect_has_its_place_in_the_sources():
    assert definition_errors(load(None), ROOT, source_texts(ROOT)) == []


def test_each_recorded_result_names_a_mutant_and_a_test_that_exist():
    names, errors = {mutant.name for mutant in load(None)}, list[str]()
    for name, result in json.loads((FOLDER.parent / "results.json").read_text()).items():
        if result["verdict"] == "caught":
            path, _, test = result["detail"].partition("::")
            function = f"def {test.partition('[')[0]}("
            if name not in names or not (ROOT / path).exists() or function not in (ROOT / path).read_text():
                errors.append(f"{name}: {result['detail']}. Run the mutant again, or remove its result.")
    assert errors == []
