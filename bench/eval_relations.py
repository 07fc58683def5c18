"""Relations that readers judged, and how many of the right ones the present rules read. Needs no stack.

    python -m bench.eval_relations FOLDER

FOLDER holds the labelled sets of the documents, beside those in bench/datasets. The verdicts are in
bench/datasets/relations, the figures go to bench/results/relations.json. Intervals are Wilson's, of 95 %.
"""

import argparse
import json
import math
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from bench.figures import read_lines
from shared.calibration.labelled_sets import Item, read
from shared.graph.rule_extractor import extract

DATASETS = Path(__file__).parent / "datasets"
READINGS = DATASETS / "relations" / "readings.jsonl"
RESULTS = Path(__file__).parent / "results" / "relations.json"
RIGHT = "right"


@dataclass(frozen=True)
class Reading:
    """A relation of a document of a labelled set, and the verdict of each reader."""

    kind: str
    set: str
    document: str
    subject: str
    relation: str
    object: str
    verdicts: Mapping[str, str]
    reason: str | None = None

    @property
    def is_right(self) -> bool:
        return {*self.verdicts.values()} == {RIGHT}

    @property
    def statement(self) -> tuple[str, str, str]:
        return self.subject, self.relation, self.object


@dataclass(frozen=True)
class Share:
    """A number of cases, and its share of all."""

    cases: int
    of: int

    def interval(self) -> tuple[float, float]:
        """Wilson, E. B. (1927): Probable inference."""
        share, z = self.cases / self.of, 1.96
        middle = share + z * z / (2 * self.of)
        width = z * math.sqrt(share * (1 - share) / self.of + z * z / (4 * self.of**2))
        return (middle - width) / (1 + z * z / self.of), (middle + width) / (1 + z * z / self.of)

    def __str__(self) -> str:
        low, high = (round(100 * bound) for bound in self.interval())
        return f"{self.cases} of {self.of}, {100 * self.cases / self.of:.0f} % [{low}, {high}]"


@dataclass(frozen=True)
class Line:
    """The record of one kind of documents. `agreement`: of the relations with two verdicts."""

    kind: str
    right: str
    agreement: str
    read: str


def readings() -> list[Reading]:
    return [Reading(**line) for line in read_lines(READINGS)]


def of_two_readers(some: Collection[Reading]) -> list[Reading]:
    return [one for one in some if len(one.verdicts) > 1]


def confidence(some: Collection[Reading]) -> float:
    """The probability that a relation is right, by Laplace's rule of succession."""
    judged = of_two_readers(some)
    return (sum(one.is_right for one in judged) + 1) / (len(judged) + 2)


def agreement(some: Collection[Reading]) -> Share:
    judged = of_two_readers(some)
    return Share(sum(len({*one.verdicts.values()}) == 1 for one in judged), len(judged))


def still_read(some: Collection[Reading], folders: Sequence[Path]) -> Share:
    """The right relations that the present rules read from the same documents."""
    right = [one for one in some if one.is_right]
    return Share(
        sum(one.statement in _statements(one.set, one.document, *folders) for one in right), len(right)
    )


@cache
def _documents(folder: Path) -> Mapping[str, Item]:
    return {item.id: item for item in read(folder).documents}


@cache
def _statements(labelled_set: str, document: str, *folders: Path) -> frozenset[tuple[str, str, str]]:
    folder = next(each / labelled_set for each in folders if (each / labelled_set / "corpus.jsonl").exists())
    item = _documents(folder)[document]
    (extraction,) = extract(item.title, [item.text])
    return frozenset((one.subject, one.type, one.object) for one in extraction.relations)


def lines(some: Sequence[Reading], folders: Sequence[Path]) -> list[Line]:
    return [
        Line(
            kind,
            str(Share(sum(one.is_right for one in of_kind), len(of_kind))),
            str(agreement(of_kind)) if of_two_readers(of_kind) else "",
            str(still_read(of_kind, folders)),
        )
        for kind in dict.fromkeys(one.kind for one in some)
        if (of_kind := [one for one in some if one.kind == kind])
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.eval_relations")
    parser.add_argument("folder", type=Path)
    measured = [asdict(line) for line in lines(readings(), [parser.parse_args().folder, DATASETS])]
    RESULTS.write_text(json.dumps(measured, indent=1) + "\n")
    print(RESULTS.read_text(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
