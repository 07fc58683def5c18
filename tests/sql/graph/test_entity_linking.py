"""Which entities a question names: exactly, by another name, in part, misspelled; and which it does not."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from local.stack import Stack
from tests.actors import Actor, World
from tests.conftest import People
from tests.sql import naming, passages
from tests.sql.naming import NamedChunk

TITLES = [
    "Billing Service", "Billing", "Billing Service Runbook", "The Heron Project", "Casablanca (film)",
    "Служба Оплаты", "计费服务", "東京タワー", "שירות חיוב", "خدمة الفوترة", "ระบบบัญชี", "INC-4821", "service",
    "What", "2026", "27 February", "2026-118 Label Outage",
]  # fmt: skip
NAMES = [
    "Kestrel", "Priya Nair", "Michael Curtiz", "Zürich", "Catherine Schmidt", "O'Brien", "C++", "Mississippi",
    "Команда Сокол", "Αθήνα", "支付团队", "ann.lee@mail.example",
]  # fmt: skip
RELATIONS = [("BillSvc", "ALIAS_OF", "Billing Service", 0.8), ("Kestrel", "ALIAS_OF", "Team Nine", 0.5)]


@dataclass(frozen=True)
class Known:
    world: World
    ann: Actor
    bob: Actor

    def linked(self, question: str, **filters: Any) -> dict[str, float]:
        return naming.link(self.world, self.ann, question, **filters)


@pytest.fixture(scope="module")
def known(stack: Stack) -> Iterator[Known]:
    """An org that knows these names, and one that knows two of its own."""
    world = World(stack)
    ann, bob = world.user(world.org("known")), world.user(world.org("unknown"))
    for title in TITLES:
        naming.put(world, ann, title, title)
    names = [*NAMES, "BillSvc", "Team Nine", "Billing Service"]
    naming.put(world, ann, "t", NamedChunk("x", names, RELATIONS))
    naming.put(world, ann, "u", NamedChunk("x", ["Albatross"]), collection="other")
    naming.put(world, bob, "Osprey", NamedChunk("x", ["Kestrel Nine"]))
    yield Known(world, ann, bob)
    world.close()


EXACT: dict[str, set[str]] = {
    "Who owns the Billing Service?": {"billing service", "billsvc"},
    "Where is the Billing Service Runbook": {"billing service runbook"},
    "Is Billing down?": {"billing"},
    "the heron project": {"heron project"},
    "Who directed Casablanca?": {"casablanca"},
    "What does Priya Nair do in ZURICH": {"priya nair", "zurich"},
    "Did O’Brien's team use C++?": {"obrien", "c++"},
    "Что делает Служба оплаты?": {"служба оплаты"},
    "谁拥有计费服务？": {"计费服务"},
    "支付团队和计费服务有什么关系": {"支付团队", "计费服务"},
    "מי אחראי על שירות חיוב?": {"שירות חיוב"},
    "من يملك خدمة الفوترة؟": {"خدمة الفوترة"},
    "What about INC-4821 and inc/4821?": {"inc 4821"},
}


def test_a_name_is_linked_in_any_spelling_and_the_longest_first(known: Known):
    assert {question: set(known.linked(question)) for question in EXACT} == EXACT


def test_a_lower_case_name_has_less_confidence_except_in_scripts_without_case(known: Known):
    assert known.linked("the Billing Service")["billing service"] == 1
    assert known.linked("the billing service")["billing service"] == 0.5
    assert known.linked("谁拥有计费服务？")["计费服务"] == 1
    assert known.linked("שירות חיוב")["שירות חיוב"] == 1
    assert 0 < known.linked("kestrel")["kestrel"] < known.linked("Kestrel")["kestrel"] <= 1


def test_aliases_are_linked_in_both_directions_with_less_confidence(known: Known):
    linked = known.linked("Is BillSvc down?")
    assert linked["billing service"] == pytest.approx(0.9 * 0.8 * linked["billsvc"])
    for asked, other in (("Kestrel", "team nine"), ("Team Nine", "kestrel")):
        linked = known.linked(f"Who is in {asked}?")
        assert linked[other] == pytest.approx(0.9 * 0.5 * linked[asked.lower()])


PARTS = {
    "What did Curtiz direct?": ["michael curtiz"], "Ask Priya": ["priya nair"], "Ask Nair": ["priya nair"],
    "Кто такой Сокол?": ["команда сокол"], "Is the Heron down?": ["heron project"],
    "Did the Label Outage last?": ["2026 118 label outage"],
}  # fmt: skip


def test_a_part_of_a_name_is_linked(known: Known):
    assert {question: [*known.linked(question)] for question in PARTS} == PARTS


MISSPELLINGS = [
    ("Who leads Kestral?", "kestrel"), ("Who leads Kesterl?", "kestrel"), ("Who leads Cestrel?", "kestrel"),
    ("Where is Missisippi?", "mississippi"), ("What did Micheal Curtiz direct?", "michael curtiz"),
    ("Ask Katherine Schmitt", "catherine schmidt"), ("Is the Biling Servise down?", "billing service"),
    ("Что делает Служба Аплаты?", "служба оплаты"),
]  # fmt: skip


def test_a_misspelled_name_is_linked_with_less_confidence(known: Known):
    for question, entity in MISSPELLINGS:
        linked = known.linked(question)
        assert max(linked, key=lambda one: linked[one], default=None) == entity, question
        assert 0.4 < linked[entity] <= 0.8, question


NO_NAMES = [
    *("who is it and what of that?", "the", "What?", "How many?", "2026", "please explain the pricing"),
    *("Write me a poem about the weather in spring", "Xylophone", "Pelican", "C"),
    *("What about INC-4822, INC-482 or INC-48210?", "Meetings of 2025", "In February?", "天气怎么样"),
    *("Погода завтра", "🚀", "👩‍👩‍👧 ❤️", "?!", " ", "\n\t"),
    *("x" * 10_000, "!" * 10_000),
]  # fmt: skip


def test_common_words_and_other_names_are_not_linked(known: Known):
    assert [question[:40] for question in NO_NAMES if known.linked(question)] == []


def test_a_long_question_is_linked_by_its_start(known: Known):
    assert set(known.linked("Kestrel " + "and " * 2400)) == {"kestrel", "team nine"}
    assert known.linked("and " * 2400 + "Kestrel") == {}
    assert set(known.linked("Kestrel " * 1250)) == {"kestrel", "team nine"}
    assert set(known.linked("支付团队" * 2500)) == {"支付团队"}


def test_at_most_the_thirty_two_most_confident_entities_are_linked(world: World, people: People):
    names = [f"{chr(65 + number // 26)}{chr(97 + number % 26)}bird" for number in range(60)]
    naming.put(world, people.ann, "t", NamedChunk("x", names))
    question = " ".join(name.lower() for name in names[:30]) + " " + " ".join(names[30:])
    linked = naming.link(world, people.ann, question)
    assert len(linked) == 32
    assert {name.lower() for name in names[30:]} <= set(linked)


def test_words_of_a_name_are_used_once(known: Known):
    """Billing is an entity as well, but not where it is a part of a longer one."""
    assert set(known.linked("Billing of the Billing Service")) == {"billing", "billing service", "billsvc"}


def test_only_searched_collections_are_linked(known: Known):
    homes = dict(known.world.as_user(known.ann, "select name, id::text from rag.collections"))
    for question in ("Who is Albatross?", "Who is Albatros?"):
        assert set(known.linked(question)) == {"albatross"}
        assert set(known.linked(question, collection_id=homes["other"])) == {"albatross"}
        assert known.linked(question, collection_id=homes["default"]) == {}
    for question in ("Kestrel", "Kestral", "Kestrel Nine", "BillSvc"):
        assert known.linked(question, collection_id=homes["other"]) == {}


def test_a_title_of_common_words_is_no_name(world: World, people: People):
    """The words of one title are in two hundred documents, those of another one in no other."""
    passages.put_many(world, people.ann, ["open systems and large systems"] * 200)
    naming.put(world, people.ann, "Open Systems", NamedChunk("x"))
    naming.put(world, people.ann, "Marsh Heron", NamedChunk("y"))
    linked = naming.link(world, people.ann, "Are Open Systems like Marsh Heron?")
    assert set(linked) == {"marsh heron"}


def test_a_name_in_many_places_is_a_name(world: World, people: People):
    for number in range(40):
        chunk = NamedChunk("Open Systems", ["Open Systems"] if number < 10 else [])
        naming.put(world, people.ann, f"t {number}", chunk)
    assert set(naming.link(world, people.ann, "Who owns Open Systems?")) == {"open systems"}
