"""Metadata filters: documents, filters with the documents that each finds, and invalid filters."""

from typing import Any

METADATA: dict[str, dict[str, Any]] = {
    "Old": {"year": 2019, "team": "a", "draft": True, "day": "2019-12-31", "owner": None},
    "New": {"year": 2024, "team": "b", "draft": False, "day": "2024-01-15T10:00:00Z", "owner": "eve"},
    "Half": {"year": 2020.5, "team": "c", "day": "2020-06-30"},
    "Text": {"year": "2020", "team": ["a", "b"], "draft": "true", "day": 20200630},
    "Object": {"year": {"$gte": 1}, "team": {"in": ["a"]}, "owner": {"name": "eve"}, "$or": 1},
    "Bare": {},
}
EVERY = " ".join(METADATA)

MATCHES: list[tuple[dict[str, Any], str]] = [
    ({}, EVERY),
    ({"team": "a"}, "Old"),
    ({"owner": None}, "Old"),
    ({"team": ["a", "b"]}, "Text"),
    ({"team": {"$eq": "a"}}, "Old"),
    ({"team": {"$eq": ["a", "b"]}}, "Text"),
    # An object without a $ is a value, whatever the names in it.
    ({"team": {"in": ["a"]}}, "Object"),
    ({"owner": {"name": "eve"}}, "Object"),
    ({"year": {"$eq": {"$gte": 1.0}}}, "Object"),
    ({"$or": {"$eq": 1}}, "Object"),
    ({"team": {}}, ""),
    ({"team": {"$in": ["a", "b"]}}, "Old New"),
    ({"team": {"$in": ["a", "a", 7, None]}}, "Old"),
    ({"owner": {"$in": [None, "eve"]}}, "Old New"),
    ({"year": {"$in": [2019.0, "2020"]}}, "Old Text"),
    ({"team": {"$in": [f"team {number}" for number in range(99)] + ["c"]}}, "Half"),
    ({"team": {"$nin": ["a", "b"]}}, "Half Text Object Bare"),
    ({"draft": {"$ne": True}}, "New Half Text Object Bare"),
    ({"owner": {"$ne": None}}, "New Half Text Object Bare"),
    ({"none": {"$ne": 1}}, EVERY),
    ({"year": {"$gte": 2019}}, "Old New Half"),
    ({"year": {"$gt": 2019}}, "New Half"),
    ({"year": {"$lte": 2020.50}}, "Old Half"),
    ({"year": {"$lt": 2020.5}}, "Old"),
    ({"year": {"$gte": 2020, "$lt": 2024}}, "Half"),
    ({"year": {"$gt": 2019, "$gte": 2019, "$lte": 2024, "$lt": 2025}}, "New Half"),
    ({"year": {"$gt": -1e299, "$lt": 1e299}}, "Old New Half"),
    ({"year": {"$gt": 2024, "$lt": 2019}}, ""),
    # Strings are compared with strings, numbers with numbers.
    ({"year": {"$gte": "2020"}}, "Text"),
    ({"year": {"$gt": "2020"}}, ""),
    ({"year": {"$lt": "2020\u0001"}}, "Text"),
    ({"year": {"$gte": 2019, "$lt": "3"}}, ""),
    ({"day": {"$gte": "2020", "$lt": "2024-01-16"}}, "New Half"),
    ({"day": {"$lte": ""}}, ""),
    ({"draft": {"$gte": "a", "$lt": "z"}}, "Text"),
    ({"none": {"$gt": 1}}, ""),
    ({"owner": {"$exists": True}}, "Old New Object"),
    ({"owner": {"$exists": False}}, "Half Text Bare"),
    ({"owner": {"$exists": True, "$ne": None}}, "New Object"),
    ({"owner": {"$exists": False}, "team": {"$exists": False}}, "Bare"),
    ({"team": {"$exists": False, "$in": ["a"]}}, ""),
    ({"year": {"$gte": 2019, "$ne": 2019.0}}, "New Half"),
    ({"year": {"$gte": 2019, "$nin": [2024, 2020.5]}}, "Old"),
    (
        {
            "year": {"$gte": 2019, "$lt": 2025},
            "team": {"$in": ["a", "b"]},
            "draft": {"$ne": True},
            "owner": {"$exists": True},
            "day": "2024-01-15T10:00:00Z",
        },
        "New",
    ),
]

# A few of them, with every operator.
OPERATORS: list[tuple[dict[str, Any], str]] = [
    ({"team": {"$eq": "a"}}, "Old"),
    ({"team": {"$in": ["a", "b"]}}, "Old New"),
    ({"team": {"$nin": ["a", "b"]}}, "Half Text Object Bare"),
    ({"draft": {"$ne": True}}, "New Half Text Object Bare"),
    ({"year": {"$gte": 2019, "$lt": 2024}}, "Old Half"),
    ({"day": {"$gt": "2019-12-31", "$lte": "2024-01-15T10:00:00Z"}}, "New Half"),
    ({"owner": {"$exists": False}}, "Half Text Bare"),
]

_DEEP: Any = 1
for _ in range(20):
    _DEEP = [_DEEP]

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"year": {"$gtee": 1}}, "year $gtee is no operator"),
    ({"year": {"$gte": 1, "lt": 2}}, "year lt is no operator"),
    ({"year": {"$": 1}}, "year $ is no operator"),
    ({"year": {"$not": {"$gte": 1}}}, "year $not is no operator"),
    ({"$or": [{"team": "a"}, {"team": "b"}]}, "$or stands where a key of the metadata is expected"),
    ({"$in": ["a"]}, "$in stands where a key of the metadata is expected"),
    ({"team": {"$in": "a"}}, "team $in takes a list of 1 to 100"),
    ({"team": {"$in": None}}, "team $in takes a list of 1 to 100"),
    ({"team": {"$in": {"a": 1}}}, "team $in takes a list of 1 to 100"),
    ({"team": {"$in": []}}, "team $in takes a list of 1 to 100"),
    ({"team": {"$in": list(range(101))}}, "team $in takes a list of 1 to 100"),
    ({"team": {"$in": ["a", ["b"]]}}, "team $in takes a list of 1 to 100"),
    ({"team": {"$in": [{"$gt": 1}]}}, "team $in takes a list of 1 to 100"),
    ({"team": {"$in": _DEEP}}, "team $in takes a list of 1 to 100"),
    ({"team": {"$nin": []}}, "team $nin takes a list of 1 to 100"),
    ({"team": {"$nin": 1}}, "team $nin takes a list of 1 to 100"),
    ({"team": {"$ne": ["a"]}}, "team $ne takes a string, a number"),
    ({"team": {"$ne": {"$in": ["a"]}}}, "team $ne takes a string, a number"),
    ({"year": {"$gt": True}}, "year $gt takes a number, or a string"),
    ({"year": {"$gte": None}}, "year $gte takes a number, or a string"),
    ({"year": {"$lt": [1]}}, "year $lt takes a number, or a string"),
    ({"year": {"$lte": {"$gt": 1}}}, "year $lte takes a number, or a string"),
    ({"day": {"$gt": "x" * 201}}, "day $gt takes a number, or a string"),
    ({"owner": {"$exists": 1}}, "owner $exists takes true or false"),
    ({"owner": {"$exists": "true"}}, "owner $exists takes true or false"),
    ({"owner": {"$exists": None}}, "owner $exists takes true or false"),
    ({f"key {number}": {"$ne": 1} for number in range(101)}, "a filter must have at most 100 operators"),
]
