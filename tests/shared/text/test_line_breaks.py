"""Lines that a program wrapped are read as one; lines of their own stay."""

import textwrap

import pytest

from shared.text.line_breaks import unwrapped
from shared.text.sentences import sentences

PARAGRAPH = (
    "The kettle of the west wing holds eleven litres, and it is emptied each evening by the porter. Who "
    "finds it warm calls 555 0199. Descaling needs citric acid, twenty grams a litre, and a rest of forty "
    "minutes; stronger acids attack the seals, which were replaced in 2019 at a cost of 1,240 euros."
)
OWN_LINES = {
    "verse": "The kettle sings upon the hob tonight,\nAnd all the porters gather round its glow,\n"
    "The rain against the window falls like light\nAnd nobody remembers where to go.",
    "address": "Kettle Works Ltd.\n12 Boiler Street\nLeeds LS1 4AB\nUnited Kingdom",
    "items": "We serve in the hall of the west wing until nine in the evening:\n- black tea\n* green tea\n"
    "1. coffee, which is made from beans that are roasted on the same day\n(a) cocoa\nb) water",
    "items without marks": "Customer churn was 5.2% in 2025; the target for 2026 is 3.5%\n"
    "Net promoter score rose from 31 to 44 in the last of the quarters\n"
    "Revenue of the services was above all of the plans we had before\nHeadcount is flat",
    "two items": "Customer churn was 5.2% in 2025; the target of 2026 is 3.5%\nNet promoter score rose to 44",
    "labels": "Contact: the porter of the west wing, on weekdays from eight to four\nPhone: 555 0199\n"
    "Mail of the porter: porter@kettles.example and also porters@kettles.example",
    "labels in lower case": "opening hours of the desk: 07:00 to 17:00 on weekdays\n"
    "phone of the service desk: 555 0199 and 555 0200\nhead of the desk: the porter of the west wing",
    "log": "2026-05-01 12:00:01 INFO the kettle of the west wing is on\n"
    "2026-05-01 12:04:09 INFO the kettle of the west wing is hot\n2026-05-01 12:05:11 INFO it is off",
    "addresses of pages": "https://kettles.example/the-west-wing/of-the-house\n"
    "https://kettles.example/the-east-wing/of-the-house\nhttps://kettles.example/other",
    "items in lower case": "keys of the front door and of the garden gate\n"
    "lamps for the tent and for the kitchen\nropes of ten metres",
    "code without marks": "def litres_of(kettle, wing, porter, year, steel, copper):\n"
    "    return kettle.litres + wing.litres + porter.litres",
    "Chinese": "\n".join("水壶在西翼的厨房里每天早上由门房倒空然后重新装满" * 3 for _ in range(3)),
    "speakers": "ANN: The kettle of the west wing has to be replaced before the winter comes\n"
    "BOB LEE: And who is going to pay for it, since the budget of this year is spent",
    "table": "| Kettle of the west wing, with its number and year | Litres |\n|---|---|\n| K-1, 2019 | 11 |",
    "columns": "Kettles of the wing      2023      2024      of which are of steel\n"
    "Litres of all the kettles     900     1,100               and of copper 40",
    "code": "```\nkettle = Kettle(litres=11, wing='west', porter='the evening porter')\nand porter\n```",
    "headings": "The kettle of the west wing holds eleven litres and is emptied by the porter\n"
    "===========================================================================\n## Descaling\ntwice a year",
    "quotation": "The kettle of the west wing holds eleven litres and it is emptied by\n> the porter",
    "paragraphs": "The kettle of the west wing holds eleven litres and it is emptied by\n\nthe porter",
}


@pytest.mark.parametrize("prefix", ["", "    ", "> ", "> > "])
def test_wrapped_lines_are_one(prefix: str):
    for width in (62, 72, 80, 100):
        text = textwrap.fill(PARAGRAPH, width, initial_indent=prefix, subsequent_indent=prefix)
        joined = unwrapped(text)
        assert "\n" not in joined
        assert len(joined) == len(text)
        assert " ".join(joined.removeprefix(prefix).split()) == PARAGRAPH
        shown = [" ".join(joined[item.start : item.end].split()) for item in sentences(text)]
        expected = [PARAGRAPH[item.start : item.end] for item in sentences(PARAGRAPH)]
        assert [one.removeprefix(prefix) for one in shown] == expected


@pytest.mark.parametrize("number", ["11 litres.", "$2.25.", "€ 40 in the hall.", "2019, at the latest."])
def test_a_sentence_goes_on_with_a_number(number: str):
    line = "The kettle of the west wing, which the porter empties each evening, holds about"
    assert unwrapped(f"{line}\n{number}") == f"{line} {number}"


def test_an_item_goes_on_in_the_lines_below_it():
    text = textwrap.fill(f"- {PARAGRAPH}", 72, subsequent_indent="  ")
    assert unwrapped(f"{text}\n- Tea") == f"{unwrapped(text)}\n- Tea"
    assert "\n" not in unwrapped(text)


@pytest.mark.parametrize("kind", OWN_LINES)
def test_lines_of_their_own_stay(kind: str):
    assert unwrapped(OWN_LINES[kind]) == OWN_LINES[kind]


def test_many_spaces_take_no_time():
    """A quadratic search would take minutes."""
    spaces = " " * 1_000_000
    text = (
        f"The kettle of the west wing holds eleven litres, and\na porter empties it{spaces}daily.\nAnd so on."
    )
    assert len(unwrapped(text)) == len(text)


def test_a_line_that_begins_something_is_never_joined():
    text = textwrap.fill(PARAGRAPH, 72)
    second = text.index("\n") + 1
    assert unwrapped(text, {second}).count("\n") == 1
