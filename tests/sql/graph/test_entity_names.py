"""Names folded: what makes two of them one entity, in every script; how they sound, and what titles name."""

import random
from typing import Any

import pytest

from tests.actors import World

SAME: list[tuple[str, ...]] = [
    ("Billing Team", "BILLING TEAM", "billing-team", "Billing_Team", " the Billing  Team\n"),
    ("Élan Café", "Elan Cafe", "E\u0301lan Cafe\u0301", "ÉLAN CAFÉ"),
    ("O'Brien", "O’Brien", "O´Brien", "OBrien", "O'Brien's", "O’Brien’s"),
    ("Straße", "STRASSE", "Strasse"),
    ("İstanbul", "Istanbul", "ıstanbul"),
    ("ＡＢＣ", "abc"),
    ("Casablanca (1942 film)", "Casablanca", "CASABLANCA （映画）"),
    ("The Beatles", "Beatles", "the the beatles"),
    ("INC-4821", "inc 4821", "INC/4821", "INC–4821"),
    ("Иван Петров", "ИВАН ПЕТРОВ", "иван-петров"),
    ("Οδυσσεύς", "ΟΔΥΣΣΕΥΣ", "οδυσσευσ"),
    ("محمد", "مُحَمَّد", "محـمد"),
    ("שלום עולם", "שָׁלוֹם עוֹלָם", "שלום־עולם"),
    ("สำนักงานใหญ่", "สํานักงานใหญ่"),
    ("東京タワー", "東京タワー。", "「東京タワー」"),
    ("ガンダム", "ｶﾞﾝﾀﾞﾑ", "カ\u3099ンタ\u3099ム"),
    ("soft\u00adhyphen", "softhyphen", "soft\u200bhyphen"),
    ("Ship 🚀 It", "Ship It", "🚢 ship❤️it"),
]
DIFFERENT: list[tuple[str, ...]] = [
    ("C", "C++", "C#"),
    ("हिन्दी", "हिनदी"),
    ("がぎ", "かき"),
    ("ใหญ่", "ใหญ"),
    ("Ship It", "Shipit"),
    ("The", "Theo"),
]
NOTHING = ["", "🚀", "---", "()", "\u200b"]


def entity(world: World, name: str | None) -> Any:
    return world.sql("select rag.entity_key(%s)", name)[0][0]


def test_names_that_differ_in_spelling_only_are_one_entity(world: World):
    entities = {names: {entity(world, name) for name in names} for names in SAME}
    assert [names for names, keys in entities.items() if len(keys) > 1 or keys == {""}] == []


def test_other_names_are_different_entities(world: World):
    entities = {names: {entity(world, name) for name in names} for names in DIFFERENT}
    assert [names for names, keys in entities.items() if len(keys) < len(names)] == []


def test_a_name_of_articles_or_without_letters_and_a_long_name(world: World):
    assert [entity(world, name) for name in NOTHING] == [""] * len(NOTHING)
    assert entity(world, None) is None
    assert entity(world, "The") == entity(world, "The The") == entity(world, "The (band)") == "the"
    assert entity(world, "ab" * 5000) == "ab" * 100
    assert entity(world, "a b " * 2500) == "a b " * 49 + "a b"


ALPHABETS = [
    (0x20, 0x7E), (0xA0, 0x24F), (0x370, 0x52F), (0x531, 0x6FF), (0x900, 0xDFF), (0xE00, 0xFFF),
    (0x1000, 0x13FF), (0x1780, 0x17FF), (0x2000, 0x2BFF), (0x3000, 0x30FF), (0x4E00, 0x4EFF),
    (0xAC00, 0xADFF), (0xF900, 0xFFEF), (0x1F300, 0x1FAFF),
]  # fmt: skip


def test_folding_an_entity_is_idempotent(world: World):
    draw = random.Random(34)  # noqa: S311  # not a secret

    def name() -> str:
        letters = (draw.randint(*draw.choice(ALPHABETS)) for _ in range(draw.randint(1, 40)))
        return draw.choice(["", "The ", "the the "]) + "".join(map(chr, letters)) + draw.choice(["", " (x)"])

    names = [name() for _ in range(2000)] + ["the " * 80 + "x", "x " * 300, *NOTHING]
    odd = world.sql(
        "select name, entity from unnest(%s::text[]) as name, lateral rag.entity_key(name) as entity "
        "where rag.entity_key(entity) <> entity or rag.entity_key(replace(entity, ' ', '_')) <> entity "
        "or rag.fold_text(entity) <> entity or length(entity) > 200",
        names,
    )
    assert odd == []


CONFUSABLE_NAMES = [
    ("Kestrel", "Kestral"), ("Phillips", "Filips"), ("Catherine", "Kathryne"), ("Azure Works", "Asure Vorks"),
    ("Петрров", "Петров"),
]  # fmt: skip


def test_often_confused_names_have_a_common_phonetic_start_or_end(world: World):
    key = "rag.phonetic_key(rag.entity_key(%s))"
    for names in CONFUSABLE_NAMES:
        ((first, second),) = world.sql(f"select {key}, {key}", *names)
        common = max(2, (2 * len(second) + 2) // 3)
        assert first[:common] == second[:common] or first[-common:] == second[-common:], (first, second)


def test_similarity_is_between_0_and_1_and_highest_for_equal_names(world: World):
    names = ["kestrel", "kestral", "kesterl", "kestrels", "petrel", "osprey", "kestrel of the hill"]
    statement = "select entity, likeness from rag.bigram_similarity('kestrel', %s::text[])"
    result = dict(world.sql(statement, names))
    assert result.pop("kestrel") == 1
    assert "kestrel of the hill" not in result
    assert all(0 < likeness < 1 for likeness in result.values())
    assert min(result[one] for one in ("kestral", "kesterl", "kestrels")) > result["petrel"]


TITLES: dict[str, dict[str, float]] = {
    "Casablanca": {"casablanca": 1},
    "Casablanca (film)": {"casablanca": 1, "casablanca film": 1, "film": 0.6},
    "Outage 42: Billing": {"outage 42 billing": 1, "outage 42": 0.6, "billing": 0.6},
    "docs/on-call.md": {"docs on call md": 1, "on call": 0.9},
    "Teams | Kestrel — Oslo": {"teams kestrel oslo": 1, "teams": 0.6, "kestrel": 0.6, "oslo": 0.6},
    "東京、大阪": {"東京 大阪": 1, "東京": 0.6, "大阪": 0.6}, "A - B - A": {"a b a": 1}, "🚀": {},
}  # fmt: skip


def test_a_title_is_an_entity_with_its_parts(world: World):
    for title, named in TITLES.items():
        rows = world.sql("select entity, weight from rag.title_names(%s)", title)
        assert dict(rows) == pytest.approx(named), title


def test_a_long_title_has_at_most_ten_entities(world: World):
    for title in ("part: " * 2000, "x" * 10_000, "\n".join(f"Name {n}," for n in range(1000))):
        rows = world.sql("select entity from rag.title_names(%s)", title)
        assert 1 <= len(rows) <= 10
        assert all(len(entity) <= 200 for (entity,) in rows)


PATHS = {
    "runbooks/wherry.md": "wherry", "repos/inkwell/CODEOWNERS": "inkwell", "inkwell/README.md": "inkwell",
    "meetings/2025-06-17-marram.md": "marram", "tickets/INC-4821": "INC-4821",
    "https://wiki.example/handbook/fjord-syn/?page=2#top": "fjord-syn", "mail/2025-03/0114.eml": None,
    "9f86d081884c7d659a2feaa0c55ad015": None, "a/" + "x" * 81: None, "a/bad\u202ename": None,
    "a/two\nlines": None,
}  # fmt: skip


def test_a_path_names_its_file_or_folder(world: World):
    names = world.sql("select path, rag.path_name(path) from unnest(%s::text[]) as path", list(PATHS))
    assert dict(names) == PATHS
