"""Parsers measured on files of public repositories.

    python -m bench.files FOLDER [--worst N]

FOLDER has the files of sources.toml as owner+name/path, and the texts of a second reader as
second/owner+name/path.txt. A fixed hash assigns each file to the half to work with or to the half to report.
--worst lists files of the half to work with; no option lists files of the other one.

Recall is the share of the expected words that the result has, precision the share of the result's words that
are expected. A changed number occurs more often in one of the two texts. A cell of an expected table is in
place if the result has it under the same header, in a row of the same name.
"""

import argparse
import hashlib
import html
import re
import resource
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, product
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean, median
from time import perf_counter

from shared.errors import RagError
from shared.ingestion.file_to_markdown import convert

SOURCES = Path(__file__).with_name("sources.toml")
WORK, REPORT, ALL = "work", "report", "all"
HEAD = (
    "| format | half | files | failed | recall | precision | both from .95, or noted "
    "| changed numbers, no note | cells in place | seconds | longest | MB |",
    f"|{' --- |' * 12}",
)
GOOD = 0.95
JOBS = 2
# Comments, addresses of links, elements, and the numbers of items, which some expected texts lack.
_MARKUP = re.compile(r"(?ims)<!--.*?-->|(?<=\])\([^()\s]*\)|</?[a-z][^<>]*>|^[ \t]*\d+[.)](?=\s)")
_NATIVE = re.compile(
    r'\b(?:Str|Code(?:Block)?\s+\([^()]*\)|Math\s+\w+)\s+"((?:[^"\\]|\\.)*)"'
    r"|\b(?:Space|SoftBreak|LineBreak|Para|Plain|Header)\b"
)
_ESCAPED = re.compile(r"\\(?:(\d+)\\?&?|([^\w\d]))")
_WORD = re.compile(r"[^\W_]+")
_NUMBER = re.compile(r"[-−+]?\d+(?:[.,:]\d+)*(?:[eE][-+]?\d+)?%?")
_RULE = re.compile(r"[\s|:-]+")
_CELL_END = re.compile(r"(?<!\\)\|")


@dataclass(frozen=True, slots=True)
class SourceFile:
    repository: str
    kind: str
    path: str
    expected: Path
    data: Path

    @property
    def half(self) -> str:
        digest = hashlib.sha256(f"{self.repository}:{self.path}".encode()).digest()
        return REPORT if digest[0] % 2 else WORK


@dataclass(frozen=True, slots=True)
class Measured:
    """`numbers`: the changed ones; `cells`: in place, and expected; `megabytes`: of the largest process;
    `failure`: the error's code, if any."""

    file: SourceFile
    recall: float
    precision: float
    numbers: tuple[str, ...]
    cells: tuple[int, int]
    notes: tuple[str, ...]
    seconds: float
    megabytes: int
    failure: str


def main() -> None:
    arguments = argparse.ArgumentParser(prog="python -m bench.files", description=__doc__)
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--worst", type=int, default=0, metavar="N")
    options = arguments.parse_args()
    # A process for each file, so that the peak of its children's memory is that of the file's parser.
    with get_context("fork").Pool(JOBS, maxtasksperchild=1) as pool:
        results = pool.map(measure, files_in(options.folder), chunksize=1)
    print("\n".join(rows(results)))
    working = [one for one in results if one.file.half == WORK]
    for result in sorted(working, key=lambda one: min(one.recall, one.precision))[: options.worst]:
        numbers = " ".join(result.numbers[:10])
        print(f"{result.recall:.2f} {result.precision:.2f} {result.failure} {result.file.data} {numbers}")


def files_in(folder: Path) -> Iterator[SourceFile]:
    """The files of the list that are in the folder with a text to compare with."""
    for repository in tomllib.loads(SOURCES.read_text())["repository"]:
        name = repository["name"].replace("/", "+")
        for kind, path, expected in repository["files"]:
            text = folder / name / expected if expected else folder / "second" / name / f"{path}.txt"
            data = folder / name / path
            if data.exists() and text.exists():
                yield SourceFile(repository["name"], kind, path, text, data)


def measure(file: SourceFile) -> Measured:
    start = perf_counter()
    text, notes, failure = "", (), ""
    try:
        converted = convert(file.data.read_bytes(), file.data.name, None)
        text, notes = converted.text, tuple(getattr(converted, "notes", ()))
    except RagError as error:
        failure = error.code
    seconds = perf_counter() - start
    expected = expected_text(file.expected)
    recall, precision = overlap(words(expected), words(text))
    wanted, got = cells(expected), cells(text)
    megabytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    numbers, in_place = changed_numbers(expected, text), ((wanted & got).total(), wanted.total())
    return Measured(file, recall, precision, numbers, in_place, notes, seconds, megabytes, failure)


def expected_text(path: Path) -> str:
    text = path.read_text(errors="replace")
    if path.suffix != ".native":
        return text
    # pandoc's tree: strings, between them spaces and the beginnings of paragraphs.
    parts = (match[1] if match[1] is not None else " " for match in _NATIVE.finditer(text))
    return _ESCAPED.sub(lambda escape: chr(int(escape[1])) if escape[1] else escape[2], "".join(parts))


def plain(text: str) -> str:
    """The text without markup. NFC, since NFKC would make 10⁶ 106."""
    return unicodedata.normalize("NFC", html.unescape(_MARKUP.sub(" ", text))).replace("\\", "")


def words(text: str) -> Counter[str]:
    return Counter(_WORD.findall(plain(text).casefold()))


def overlap(expected: Counter[str], result: Counter[str]) -> tuple[float, float]:
    """Recall and precision; 1 of nothing."""
    recall, precision = (
        (expected & result).total() / text.total() if text else 1.0 for text in (expected, result)
    )
    return recall, precision


def changed_numbers(expected: str, result: str) -> tuple[str, ...]:
    one, other = (Counter(_NUMBER.findall(plain(text))) for text in (expected, result))
    return tuple(sorted(((one - other) | (other - one)).elements()))


def cells(text: str) -> Counter[tuple[str, str, str]]:
    """(header, name of the row, cell) of all Markdown tables."""
    cells: Counter[tuple[str, str, str]] = Counter()
    for is_row, lines in groupby(text.splitlines(), lambda line: line.lstrip().startswith("|")):
        if not is_row:
            continue
        table = [_cells_of(line) for line in lines if not _RULE.fullmatch(line)]
        for row in table[1:]:
            cells.update((title, row[0], cell) for title, cell in zip(table[0], row, strict=False) if cell)
    return cells


def _cells_of(line: str) -> list[str]:
    texts = _CELL_END.split(line.strip())[1:-1] or [""]
    return [" ".join(_WORD.findall(plain(text).casefold())) for text in texts]


def rows(results: Sequence[Measured]) -> Iterator[str]:
    """A row for each format and half, and for all files of a half."""
    yield from HEAD
    for kind, half in product([*sorted({one.file.kind for one in results}), ALL], (WORK, REPORT)):
        chosen = [one for one in results if one.file.half == half and kind in (ALL, one.file.kind)]
        if chosen:
            yield _row(kind, half, chosen)


def _row(kind: str, half: str, results: Sequence[Measured]) -> str:
    place, total = (sum(one.cells[part] for one in results) for part in (0, 1))
    failed = sum(bool(one.failure) for one in results)
    good = fmean(bool(one.notes) or min(one.recall, one.precision) >= GOOD for one in results)
    changed = sum(bool(one.numbers) and not one.notes for one in results)
    recall, precision = (median(getattr(one, name) for one in results) for name in ("recall", "precision"))
    seconds, megabytes = [one.seconds for one in results], max(one.megabytes for one in results)
    cells_in_place = f"{place / total:.1%} of {total}" if total else "-"
    return (
        f"| {kind} | {half} | {len(results)} | {failed} | {recall:.3f} | {precision:.3f} | {good:.0%} "
        f"| {changed} | {cells_in_place} | {median(seconds):.2f} | {max(seconds):.1f} | {megabytes} |"
    )


if __name__ == "__main__":
    main()
