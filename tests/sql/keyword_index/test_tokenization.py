"""Terms of a text for keyword search: stems in its language, and identifiers."""

import re

import pytest

from tests.actors import World
from tests.conftest import People
from tests.sql import passages


def terms(world: World, text: str, config: str = "english") -> dict[str, int]:
    return dict(world.sql("select term, occurrences from rag.terms(%s, %s)", config, text))


IDENTIFIERS = {
    "INC-4821": "inc4821", "A-T": "at", "E_CONN_RESET": "econnreset", "softLogout": "softlogout",
    "ISO27001": "iso27001",
    "ann.lee+rag@mail.example.com": "ann.lee+rag@mail.example.com", "v1.2.3": "v1.2.3",
    "10.0.0.1": "10.0.0.1", "and/or": "and/or", "std::vector": "std::vector",
    "http://a.example/x": "http://a.example/x", "2026-01-31": "2026-01-31", "SKU#42": "sku#42", "R&D": "r&d",
    "C++": "c++",
}  # fmt: skip


def test_an_identifier_is_one_term(world: World, subtests: pytest.Subtests):
    for written, term in IDENTIFIERS.items():
        with subtests.test(written=written):
            for around in ("{}", "See {}.", "({}), then", "“{}”", "{}: no", "{}\nnext"):
                assert terms(world, around.format(written)).get(term) == 1, around


NAMES = {
    "softLogout": "soft logout", "HTTPServer": "http server", "getURLForID": "get url for id",
    "lastKnownEventId": "last known event id", "IServerVersions": "i server versions", "v2Users": "v2 users",
    "parse_HTTPHeader": "parse http header",
    "window.localStorage": "window local storage",
    "ISO27001": "iso 27001", "SOC2": "soc 2", "RFC–7519": "rfc 7519",
}  # fmt: skip


def test_a_name_has_the_terms_of_its_words_and_of_its_spellings(world: World, subtests: pytest.Subtests):
    for name, words in NAMES.items():
        with subtests.test(name=name):
            found = terms(world, name, "simple")
            assert terms(world, words, "simple").items() <= found.items()
            joined = words.removeprefix("window ").replace(" ", "")
            assert found[joined] == 1
            for separator in "-", "_":
                written = terms(world, words.replace(" ", separator), "simple")
                assert written[words.replace(" ", "")] == 1


LONGER = {
    "localStorage-backed": ("localstorage", "localstoragebacked", "backed"),
    "MW30-Q5": ("mw30", "q5", "mw30q5"),
    "parse_HTTPHeader": ("httpheader", "parsehttpheader"),
    "base64Encode": ("base", "64", "encode", "base64encode"),
    "GSM160A12-R7B/7703": ("gsm160a12r7b", "gsm160a12-r7b/7703"),
    "window.localStorage": ("localstorage", "window.localstorage"),
}


def test_a_name_within_a_longer_one_is_a_term_too(world: World, subtests: pytest.Subtests):
    for written, names in LONGER.items():
        with subtests.test(written=written):
            assert dict.fromkeys(names, 1).items() <= terms(world, written, "simple").items()


WHOLE = ("iPhone", "nDCG", "mRNAs", "PhD", "APIs", "DVDs", "kWh", "i18n", "k8s", "H2O", "Q3", "0x80070005")


def test_words_with_a_capital_or_a_number_in_them_stay_whole(world: World, subtests: pytest.Subtests):
    for word in WHOLE:
        with subtests.test(word=word):
            assert terms(world, word, "simple") == {word.lower(): 1}


# By how a person may write them.
SPELLINGS = {
    "soft logout": "softLogout", "softlogout": "softLogout", "crossSigning": "cross-signing",
    "keyBackup": "key backup", "last_known_event_id": "lastKnownEventId", "PPR 9087": "PPR-9087",
    "QQR-9087": "QQR 9087", "QQT9087": "QQT–9087", "MW 30 Q 5": "MW30-Q5", "MWT30Q5": "MWT-30-Q5",
    "MPXV 5010 DP": "MPXV5010DP", "ISO27001": "ISO 27001", "ISO 9001": "ISO9001", "SOC2": "SOC 2",
}  # fmt: skip


def test_a_name_written_in_another_way_is_found_first(
    world: World, people: People, subtests: pytest.Subtests
):
    for written in SPELLINGS.values():
        first = re.findall(r"[A-Z]+|[a-z]+", written)[0]
        passages.put(world, people.ann, f"The one with {first}, that was it.", title="x")
        passages.put(world, people.ann, f"The one with {written}, that was it.", title="x")
    for query, written in SPELLINGS.items():
        with subtests.test(query=query):
            rows = passages.search(world, people.ann, f"what about {query}?")
            assert written in rows[0]["content"]


def test_an_identifier_is_found_before_texts_with_its_parts(world: World, people: People):
    identifiers = [*IDENTIFIERS, "0x80070005", "ORA00942", "404"]
    for written in identifiers:
        parts = " and ".join(written.replace("-", " ").replace(".", " ").split())
        passages.put(world, people.ann, parts, title="x")
        passages.put(world, people.ann, f"The one with {written}, that was it.", title="x")
    for written in identifiers:
        rows = passages.search(world, people.ann, f"what about {written.lower()}?")
        assert written in rows[0]["content"]


NO_IDENTIFIERS = ["-", "a", "1.", ".5", "a- b", "@ann", "# x", "x" * 300]


def test_other_texts_are_not_identifiers(world: World):
    found = "select text, identifier from unnest(%s::text[]) as text, rag.identifiers(text) as identifier"
    assert world.sql(found, NO_IDENTIFIERS) == []


def test_a_number_is_found_with_and_without_leading_zeros_and_unit(world: World, people: People):
    shown = [
        ("7.5%", "7.5"), ("7.5 %", "7.5"), ("00417", "417"), ("007", "7"), ("042", "42"),
        ("2,180", "2180"), ("2.180", "2180"), ("2\u00a0180\u00a0km", "2180"), ("1.234,50 €", "1234.50"),
    ]  # fmt: skip
    for written, plain in shown:
        assert (
            terms(world, f"The value is {written}.")[plain]
            == terms(world, f"The value is {plain}.")[plain]
            == 1
        )
    passages.put(world, people.ann, "| North pier | 7.5% | 00417 |", title="x")
    passages.put(world, people.ann, "| South pier | 92.0% | 00042 |", title="x")
    passages.put(world, people.ann, "| East pier | 3.5% | 42 |", title="x")
    for query, found in (
        ("417", ["00417"]),
        ("00417", ["00417"]),
        ("7.5 %", ["7.5%"]),
        ("42", ["00042", "| 42"]),
    ):
        contents = [row["content"] for row in passages.search(world, people.ann, query)]
        assert all(any(text in content for content in contents[: len(found)]) for text in found), query
    # Parts of dates, versions and hexadecimal numbers are none.
    for written in ("2026-01-31", "v1.02", "0x0041", "1,00", "1.2.345", "000", "A-0041", "08"):
        identifiers = {row[0] for row in world.sql("select * from rag.identifiers(%s)", written)}
        assert identifiers <= {written.lower()}, written


def test_a_too_long_identifier_is_not_a_term(world: World):
    assert world.sql("select * from rag.identifiers(%s)", "a-" * 99 + "bb") != []
    assert world.sql("select * from rag.identifiers(%s)", "a-" * 100 + "b") == []


def test_each_term_has_its_frequency(world: World):
    results = terms(world, "Pumps pump. INC-4821, inc-4821; the pump")
    assert results == {"pump": 3, "inc": 2, "4821": 2, "inc4821": 2}


def test_characters_of_languages_without_spaces_are_single_terms(world: World):
    assert terms(world, "東京東 Tokyo서울", "simple") == {"東": 2, "京": 1, "tokyo": 1, "서": 1, "울": 1}


def test_decomposed_letters_and_subscripts_make_the_same_terms(world: World):
    same = {
        "Jo\u0308rg-7 Mu\u0308nz": "J\u00f6rg-7 M\u00fcnz",
        "\u1112\u1161\u11ab\u1100\u116e\u11a8": "한국",
        "Al₂O₃ absorbs CO₂": "Al2O3 absorbs CO2",
    }
    for text, expected in same.items():
        assert terms(world, text) == terms(world, expected)


STEMMERS = {
    "en": "english", "EN-gb": "english", "fr-CA": "french", "nb": "norwegian", "no": "norwegian",
    "ja": "simple", "english": "simple",
}  # fmt: skip


def test_a_language_tag_selects_its_stemmer(world: World):
    stemmers = world.sql(
        "select lang, rag.text_config(lang)::text from unnest(%s::text[]) as lang", [*STEMMERS]
    )
    assert dict(stemmers) == STEMMERS


def test_every_supported_language_has_a_stemmer_in_this_postgres(world: World):
    """On each version that is supported, and no configuration of Postgres' own is forgotten."""
    body = world.sql("select prosrc from pg_proc where oid = 'rag.text_config'::regproc")[0][0]
    ours = {part.split("'")[0] for part in body.split("'pg_catalog.")[1:]}
    configurations = "select cfgname from pg_ts_config where cfgnamespace = 'pg_catalog'::regnamespace"
    theirs = {name for (name,) in world.sql(configurations)}
    assert ours - theirs == set()
    assert theirs - ours <= {"estonian"}
