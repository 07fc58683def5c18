"""The TypeScript SDK as its users have it: packed, installed, and imported by its name."""

import json
import re
import select
import subprocess
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from local import ROOT
from local.npm_tools import npm_program
from local.tools import build_typescript_sdk
from tests.external_programs import completed, surroundings

Row = dict[str, Any]
SCRIPTS = Path(__file__).parent / "typescript"
KEY = "mn_live_4f1d8c0b7a"
HOME = "4be3f7db-0000-4000-8000-000000000001"
# As strict as a user may have it, and with Node's names alone: no browser's.
OPTIONS = {
    "target": "ES2022", "module": "NodeNext", "lib": ["ES2022"], "types": ["node"], "strict": True,
    "typeRoots": [str(ROOT / "node_modules" / "@types")], "noUncheckedIndexedAccess": True,
    "exactOptionalPropertyTypes": True, "skipLibCheck": False,
}  # fmt: skip
# The types of supabase-js need a browser's names.
SUPABASE_OPTIONS = {
    **OPTIONS, "lib": ["ES2022", "DOM"], "skipLibCheck": True,
    "paths": {"@supabase/*": [str(ROOT / "node_modules" / "@supabase" / "*")]},
}  # fmt: skip


@dataclass(frozen=True)
class Package:
    """A folder from which scripts import it."""

    folder: Path

    @property
    def sdk(self) -> Path:
        return self.folder / "node_modules" / "@mnemosyne-ai" / "sdk"

    def program(self, script: str) -> list[str]:
        return ["node", str(self.folder / script)]

    def run(self, script: str, value: Any, **environment: str) -> Any:
        """What the script prints for `given`, parsed."""
        around = {"cwd": self.folder, "env": surroundings(environment)}
        process = completed(self.program(script), input=json.dumps(value), timeout=120, **around)
        assert process.returncode == 0, process.stderr
        return json.loads(process.stdout)

    def calls(self, client: Row, *steps: Row, **how: bool) -> Row:
        """Those calls, one after the other: results and waits. `hurried` lets time pass
        quickly, `bytewise` makes packets of a byte."""
        arguments = {"client": {"apiKey": KEY, **client}, "steps": steps, **how}
        driver = self._driver
        assert driver.stdin
        assert driver.stdout
        assert driver.poll() is None, "an earlier case ended the process"
        driver.stdin.write(json.dumps(arguments) + "\n")
        driver.stdin.flush()
        assert select.select([driver.stdout], [], [], 120)[0], "no answer within two minutes"
        line = driver.stdout.readline()
        assert line, "the case ended the process; its error is on standard error"
        row: Row = json.loads(line)
        return row

    @cached_property
    def _driver(self) -> subprocess.Popen[str]:
        """One process for the calls of all tests: the start of Node takes longer than most of them."""
        return subprocess.Popen(
            self.program("driver.mjs"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            cwd=self.folder, env=surroundings({}),
        )  # fmt: skip

    def close(self) -> None:
        """End the process of the calls."""
        if "_driver" in vars(self):
            self._driver.kill()
            self._driver.communicate()

    def results(self, client: Row, *steps: Row, **how: bool) -> list[Row]:
        matches: list[Row] = self.calls(client, *steps, **how)["results"]
        return matches


def install(folder: Path) -> None:
    build_typescript_sdk.install(folder, *SCRIPTS.glob("*.mjs"))


def blocks(text: str, language: str) -> str:
    """All blocks in that language of a page, as one program."""
    return "".join(re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL))


def compile_users(package: Package) -> None:
    """The examples, those of the README too, and types, with only the package."""
    folder = build_typescript_sdk.SOURCE
    sources = [*(folder / "examples").glob("*.ts"), *SCRIPTS.glob("*.ts")]
    texts = {source.name: source.read_text() for source in sources}
    texts["readme.ts"] = blocks((folder / "README.md").read_text(), "ts")
    for name, text in texts.items():
        (package.folder / name).write_text(text)
    for options, names in ((OPTIONS, texts.keys() - {"supabase.ts"}), (SUPABASE_OPTIONS, {"supabase.ts"})):
        configuration = {"compilerOptions": options, "files": sorted(names)}
        (package.folder / "tsconfig.json").write_text(json.dumps(configuration))
        process = completed([npm_program("tsc"), "--project", package.folder])
        assert process.returncode == 0, process.stdout
