"""What a search must find, said a second time and slowly: documents of several people in two orgs, drawn at
random, and the rules of visibility and filters over them in Python.
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass, replace
from operator import ge, gt, le, lt
from typing import Any

import numpy as np

from tests.actors import MODEL, Actor, Org, World
from tests.conftest import People, _people
from tests.sql import passages

WORDS = [f"w{number}" for number in range(12)]
VALUES: list[Any] = [
    "1", 1, 1.0, 2.50, True, None, [1, "x"], [1.0, "x"], {"a": 1, "b": []}, {"b": [], "a": 1.0},
]  # fmt: skip
# What each field of a document is drawn from; few values, so that filters meet.
FIELDS: dict[str, list[Any]] = {
    "source_type": ["doc", "email", "faq"],
    "lang": ["en", "en-GB", "EN", "fr", "english", None],
    "occurred_at": [None, *(f"2026-0{month}-01T00:00:00+00:00" for month in range(1, 6))],
    "author": ["ann", "Ann", None],
    "origin": ["github", "slack", None],
    "state": ["open", "merged", None],
    "labels": [[], ["red"], ["red", "blue"], ["blue", "blue"]],
    "embedding_model": [MODEL, MODEL, MODEL, "another model"],
}
SEEDS = range(1, 15)


@dataclass(frozen=True)
class Passage:
    org: Org
    owner: str | None
    document_id: str
    chunk_id: str
    text: str
    seed: int
    fields: dict[str, Any]


def plain(value: Any) -> Any:
    """Something that is equal for equal JSON, in which a truth value is no number."""
    if isinstance(value, list):
        return ("list", *map(plain, value))
    if isinstance(value, dict):
        return ("object", *sorted((key, plain(item)) for key, item in value.items()))
    return (isinstance(value, bool), value)


def sees(person: Actor, orgs: Iterable[Org], admin: bool, passage: Passage) -> bool:
    return passage.org in orgs and (passage.owner in (None, person.id) or admin)


def obeys(passage: Passage, filters: dict[str, Any]) -> bool:
    """Whether a passage is one that these filters leave."""
    fields = passage.fields
    date, lang = fields["occurred_at"], (fields["lang"] or "").lower()
    expected = filters.get("lang", "").lower()
    return (
        fields["embedding_model"] == filters.get("model", MODEL)
        and filters.get("org_id") in (None, passage.org.id)
        and fields["source_type"]
        in (filters.get("source_types") or [filters.get("source_type", fields["source_type"])])
        and (not expected or lang == expected or lang.startswith(f"{expected}-"))
        and ("date_from" not in filters or (date is not None and date >= filters["date_from"]))
        and ("date_to" not in filters or (date is not None and date <= filters["date_to"]))
        and fields["collection_id"] in (filters.get("collection_ids") or [fields["collection_id"]])
        and all(fields[one] in (filters.get(many) or [fields[one]]) for one, many in LISTS.items())
        and (not filters.get("labels") or bool(set(filters["labels"]) & set(fields["labels"])))
        and all(
            all(holds(fields["metadata"], key, *operation) for operation in operations(condition))
            for key, condition in filters.get("metadata", {}).items()
        )
    )


def operations(condition: Any) -> list[tuple[str, Any]]:
    is_value = not isinstance(condition, dict) or not any(key.startswith("$") for key in condition)
    return [("$eq", condition)] if is_value else list(condition.items())


def holds(metadata: dict[str, Any], key: str, operator: str, operand: Any) -> bool:
    value: Any = metadata.get(key)
    one = plain(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    is_comparable = isinstance(value, str) if isinstance(operand, str) else is_number
    match operator:
        case "$exists":
            return (key in metadata) is operand
        case "$ne" | "$nin":
            return not holds(metadata, key, {"$ne": "$eq", "$nin": "$in"}[operator], operand)
        case "$in":
            return key in metadata and one in map(plain, operand)
        case "$eq":
            return key in metadata and one == plain(operand)
    comparison = {"$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}[operator]
    return is_comparable and bool(comparison(value, operand))


LISTS = {"author": "authors", "origin": "origins", "state": "states"}


def some_filters(draw: random.Random, people: People, collections: list[str]) -> dict[str, Any]:
    """Up to three filters at random, of every kind."""
    months = sorted(draw.sample(FIELDS["occurred_at"][1:], 2))
    kinds: dict[str, Any] = {
        "source_type": draw.choice(FIELDS["source_type"]),
        "source_types": draw.choice([[], ["doc", "faq"], ["email", "none"]]),
        "lang": draw.choice(["en", "EN-gb", "fr", "e", "xx"]),
        "org_id": draw.choice([people.acme.id, people.bolt.id]),
        "date_from": months[0],
        "date_to": months[1],
        "model": "another model",
        "collection_ids": draw.choice([[], draw.sample(collections, min(2, len(collections)))]),
        "authors": draw.choice([["ann"], ["ann", "Ann"], ["bob"], []]),
        "origins": draw.choice([["github"], ["github", "slack"]]),
        "states": draw.choice([["open"], ["closed", "merged"]]),
        "labels": draw.choice([["red"], ["blue", "green"], ["re"]]),
        "metadata": {"key": some_condition(draw), **draw.choice([{}, {}, {"other": 1}])},
    }
    chosen = draw.sample(sorted(kinds), draw.choice([0, 0, 1, 1, 1, 2, 3]))
    if "source_types" in chosen and "source_type" in chosen:
        chosen.remove("source_types")
    return {name: kinds[name] for name in chosen}


def some_condition(draw: random.Random) -> Any:
    """A value, or one or two operators."""
    scalars = [value for value in VALUES if not isinstance(value, list | dict)]
    few, bound = draw.sample(scalars, 2), draw.choice([0, 1, 2.5, "1", "2"])
    operators: dict[str, Any] = {
        "$eq": draw.choice(VALUES), "$ne": few[0], "$in": few, "$nin": few, "$exists": draw.random() < 0.5,
        "$gt": bound, "$gte": bound, "$lt": bound, "$lte": bound,
    }  # fmt: skip
    chosen = draw.sample(sorted(operators), draw.choice([0, 1, 1, 2]))
    return {name: operators[name] for name in chosen} or draw.choice(VALUES)


class Library:
    """Puts, replaces and deletes documents as their people, and knows the remaining ones."""

    def __init__(self, world: World, seed: int) -> None:
        self.world, self.people = world, _people(world)
        self.draw = draw = random.Random(seed)  # noqa: S311  # not a secret
        self.documents: dict[tuple[str, str | None, str, str], list[Passage]] = {}
        for _ in range(45):
            self.put()
        for key in draw.sample(sorted(self.documents, key=str), 4):
            owners = (self.people.ada, self.people.ann, self.people.bob)
            owner = next(one for one in owners if self._may(one, key))
            assert passages.delete(world, owner, self.documents.pop(key)[0].document_id)

    def _may(self, person: Actor, key: tuple[str, str | None, str, str]) -> bool:
        return (
            person.org is not None
            and key[0] == person.org.id
            and (key[1] in (None, person.id) or person.id == self.people.ada.id)
        )

    def put(self) -> None:
        """One document by a random user; every third name is one that may be there already."""
        draw = self.draw
        person = draw.choice([self.people.ann, self.people.alf, self.people.ada, self.people.bob])
        assert person.org is not None
        fields = {name: draw.choice(values) for name, values in FIELDS.items()}
        fields["metadata"] = {
            name: draw.choice(VALUES) for name in draw.sample(["key", "other"], draw.randint(0, 2))
        }
        private, collection = draw.random() < 0.3, draw.choice(["default", "notes"])
        name = f"name {draw.randint(1, 30)}"
        seeds = [draw.choice(SEEDS) for _ in range(draw.randint(1, 4))]
        texts = [" ".join(draw.choices(WORDS, k=draw.randint(1, 6))) for _ in seeds]
        document_id = passages.put(
            self.world, person, *texts, vectors=[passages.written(seed) for seed in seeds],
            external_id=name, collection=collection, private=private, title="t", **fields,
        )  # fmt: skip
        rows = self.world.sql(
            "select id::text, collection_id::text from rag.chunks where org_id = %s and document_id = %s "
            "order by ordinal", person.org.id, document_id,
        )  # fmt: skip
        owner = person.id if private else None
        self.documents[person.org.id, owner, collection, name] = [
            Passage(person.org, owner, document_id, chunk_id, text, seed, {**fields, "collection_id": home})
            for (chunk_id, home), text, seed in zip(rows, texts, seeds, strict=True)
        ]

    @property
    def passages(self) -> list[Passage]:
        return [passage for entry in self.documents.values() for passage in entry]

    def seen(self, person: Actor) -> list[Passage]:
        people = self.people
        orgs: list[Any] = [people.acme, people.bolt] if person.id == people.kim.id else [person.org]
        admin = person.id == people.ada.id
        return [one for one in self.passages if sees(person, orgs, admin, one)]

    def left(self, person: Actor, filters: dict[str, Any]) -> list[Passage]:
        return [one for one in self.seen(person) if obeys(one, filters)]


def nearest(needle: list[float], left: list[Passage]) -> list[str]:
    """All of them, nearest first in half precision, equally near ones by id."""
    half = np.array(needle, dtype=np.float16).astype(np.float64)

    def distance(passage: Passage) -> float:
        other = np.array(passages.written(passage.seed), dtype=np.float16).astype(np.float64)
        return round(1 - float(half @ other / np.linalg.norm(half) / np.linalg.norm(other)), 6)

    distances = {seed: distance(replace(left[0], seed=seed)) for seed in {one.seed for one in left}}
    return [one.chunk_id for one in sorted(left, key=lambda one: (distances[one.seed], one.chunk_id))]
