"""Mutants as the TOML files define them, and the checks of these files."""

import json
import subprocess
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.mutation import migration

FOLDER = Path(__file__).parent / "mutants"
SOURCES = ("functions", "shared", "sql", "local", "sdk", "serverless.yml")


@dataclass(frozen=True)
class Mutant:
    """One planted defect. Without `find` nothing changes: the tests must pass."""

    name: str
    area: str
    tests: tuple[str, ...]
    find: str = ""
    replace: str = ""
    execute: str | None = None

    def edited(self, text: str) -> str:
        return text.replace(self.find, self.replace, 1)


def load(tests_of: Path | None, folder: Path = FOLDER) -> list[Mutant]:
    """The mutants of all files. `tests_of` names a file that maps an area to other tests."""
    mutants = list[Mutant]()
    other: Mapping[str, list[str]] = _parsed(tests_of) if tests_of else {}
    for path in sorted(folder.glob("*.toml")):
        data = tomllib.loads(path.read_text())
        tests = tuple(other.get(data["area"], data["tests"]))
        for row in data["mutant"]:
            name, find = row["name"], row["find"]
            replace = row.get("replace", find)
            mutants.append(Mutant(name, data["area"], tests, find, replace, row.get("execute")))
    return mutants


def _parsed(path: Path) -> dict[str, list[str]]:
    parse = json.loads if path.suffix == ".json" else tomllib.loads
    parsed: dict[str, list[str]] = parse(path.read_text())
    return parsed


def project_files(root: Path) -> list[str]:
    """The files of a checkout that git knows or would add."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    return [name for name in dict.fromkeys(listed.split("\0")) if name and (root / name).is_file()]


def source_texts(root: Path) -> dict[str, str]:
    """The text of each file in which a mutant may be planted, by its path."""
    texts = dict[str, str]()
    for name in project_files(root):
        if name.split("/")[0] in SOURCES:
            try:
                texts[name] = (root / name).read_text()
            except UnicodeDecodeError:
                continue
    return texts


def definition_errors(mutants: list[Mutant], root: Path, texts: Mapping[str, str]) -> list[str]:
    """The errors of the definitions, one sentence each."""
    names = [mutant.name for mutant in mutants]
    errors = [f"{name}: the name is used twice" for name in sorted({n for n in names if names.count(n) > 1})]
    for test, area in {test: mutant.area for mutant in mutants for test in mutant.tests}.items():
        if not (root / test.split("::")[0]).exists():
            errors.append(f"{area}: {test} does not exist")
    for mutant in mutants:
        places = [name for name, text in texts.items() for _ in range(text.count(mutant.find))]
        if len(places) != 1:
            errors.append(
                f"{mutant.name}: the text of `find` occurs {len(places)} times in the sources "
                f"({', '.join(sorted(set(places)))}), not once. Correct it in tests/mutation/mutants."
            )
        elif mutant.find == mutant.replace and mutant.execute is None:
            errors.append(f"{mutant.name}: find equals replace")
        elif places[0].endswith(".py"):
            try:
                compile(mutant.edited(texts[places[0]]), places[0], "exec")
            except SyntaxError as error:
                errors.append(f"{mutant.name}: {error}")
        elif places[0].endswith(".sql"):
            try:
                migration.script(texts[places[0]], mutant.edited(texts[places[0]]), mutant.execute)
            except ValueError as error:
                errors.append(f"{mutant.name}: {error}")
    return errors
