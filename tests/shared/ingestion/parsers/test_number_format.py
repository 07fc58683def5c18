"""Numbers, dates and times of cells are shown as Excel shows them; dates as ISO dates."""

from io import BytesIO
from time import thread_time
from zipfile import ZipFile

import pytest

from shared.ingestion.parsers.number_format import UNKNOWN, Separators, shown_number, shown_text
from shared.ingestion.parsers.number_separators import separators_of, separators_of_package
from shared.ingestion.parsers.office_xml import Package
from tests.shared.sample_files import archive

ACCOUNTING = '_-* #,##0.00_-;-* #,##0.00_-;_-* "-"??_-;_-@_-'
NUMBERS: list[tuple[float, str, str]] = [
    (0.075, "0.0%", "7.5%"), (1234.5, "[$€-407] #,##0.00", "€ 1,234.50"),
    (1234.5, '#,##0.00 "€"', "1,234.50 €"), (-310.4, r"#,##0.00;[Red]\(#,##0.00\)", "(310.40)"),
    (417, "00000", "00417"), (42, "000-000", "000-042"), (1234567.891, "#,##0", "1,234,568"),
    (1.005, "0.00", "1.01"), (0.5, "#.00", ".50"), (5, "0.##", "5"), (0.00000123, "0.00E+00", "1.23E-06"),
    (12345.678, "##0.0E+0", "12.3E+3"), (3.5, '0.0 "kg"', "3.5 kg"), (7, '"No. "0', "No. 7"),
    (2500000, '0.0,,"M"', "2.5M"), (-12, '0;(0);"nil"', "(12)"), (0, '0;(0);"nil"', "nil"),
    (-98.5, ACCOUNTING, "- 98.50"), (0, ACCOUNTING, "-"), (1500, "[$¥-411]#,##0", "¥1,500"),
    (-0.5, 'General" kg"', "-0.5 kg"), (-5000, '[>=1000000]0.0,,"M";0.0,"K"', "-5.0K"),
    (-3.5, "[>=1000]#,##0;0.00;0", "-3.50"), (150, "[<100]0.0;[>=100]0", "150"),
    (50.25, "[<100]0.0;[>=100]0", "50.3"), (1234567, "# ##0", "1234 567"), (0.5, "# ?/?", "1/2"),
    (-5.25, "# ??/??", "-5 1/4"), (3.5, "# ?/8", "3 4/8"), (3.14159, '"pi is ".00', "pi is 3.14"),
    (5, "@", "5"), (1e30, "0.00", "1E+30"),
    # Literal digits, points and commas.
    (5, r"00\1, 00\2", "001, 052"), (5, "001, 000", "001, 005"), (5, "0.1", "5.1"),
    (3, '0." Tag"', "3. Tag"), (5, "0.", "5"),
    # General.
    (0.1 + 0.2, "General", "0.3"), (1 / 3, "General", "0.3333333333"),
    (4006381333931, "General", "4006381333931"), (-5, "", "-5"), (1e21, "General", "1E+21"),
    (0.00001234, "General", "1.234E-05"),
    # Dates and times.
    (46451, "dd.mm.yyyy", "2027-03-05"), (46451, "mmm yyyy", "2027-03"), (46451, "yyyy", "2027"),
    (46451.6979166667, "dd/mm/yyyy hh:mm", "2027-03-05 16:45"),
    (46451.5, "yyyy-mm-dd hh:mm:ss", "2027-03-05 12:00:00"), (59, "yyyy-mm-dd", "1900-02-28"),
    (0.3541666666666667, "hh:mm", "08:30"), (0.295138888888889, "h:mm AM/PM", "7:05 AM"),
    (0.5, "h AM/PM", "12 PM"), (1.2604166666666667, "[h]:mm", "30:15"),
    (3725.5 / 86400, "mm:ss.0", "02:05.5"), (0.0625, "[mm]", "90"), (-1, "yyyy-mm-dd", "-1"),
    (3e9, "yyyy-mm-dd", "3000000000"), (46451, "[$-407]d. mmmm yyyy", "2027-03-05"),
    (46451, "mmmm", "2027-03-05"),
]  # fmt: skip


def test_numbers_have_their_format():
    assert [(value, code, shown_number(value, code)) for value, code, _ in NUMBERS] == NUMBERS


def test_dates_may_be_counted_from_1904():
    assert shown_number(44989, "yyyy-mm-dd", from_1904=True) == "2027-03-05"


def test_texts_have_the_words_of_their_format():
    assert shown_text("A7", '"No. "@') == "No. A7"
    assert shown_text("A7", '0;-0;0;@" kg"') == "A7 kg"
    assert shown_text("A7", "0.00") == shown_text("A7", "@") == "A7"


GERMAN = ["Stück für die Hütte"]
MANY = ["Die Kosten sind im Vergleich zum Vorjahr nicht gestiegen"]
NAMES = [f"Erz{letter}{other}o" for letter in "bcdfghkl" for other in "mnpqrstvwxyz"]
TAGS = {
    "2.180 1.234,50 €": "vi-VN sr-RS sr-Latn-RS bs-Latn-BA gl-ES eu-ES mk-MK is-IS ar-MA",
    "2\u00a0180 1\u00a0234,50 €": "et-EE lt-LT lv-LV sq-AL be-BY kk-KZ",
    "2,180 1,234.50 €": "ja-JP zh-Hans-CN zh-TW ko-KR th-TH he-IL en-US en es-MX",
    "2180 1,234.50 €": "xx-XX ar-EG fa-IR", "2180 1234.50 €": "en-ZA es-419 de-CH",
}  # fmt: skip


def shown_with(separators: Separators) -> str:
    whole, price = ((2180, "#,##0"), (1234.5, '#,##0.00 "€"'))
    return " ".join(shown_number(*value, separators=separators) for value in (whole, price))


def test_a_language_has_its_separators(subtests: pytest.Subtests):
    for shown, tags in TAGS.items():
        for tag in tags.split():
            with subtests.test(tag=tag):
                assert shown_with(separators_of([], [], [tag])) == shown


def test_hostile_texts_take_no_time():
    """These took minutes."""
    started = thread_time()
    code, text = "0" + '" ' * 5_000 + "x", "<a:t " * 20_000
    assert separators_of([code, "[$" * 20_000], []) == UNKNOWN
    files = {"ppt/charts/chart1.xml": "<c/>", "ppt/slides/slide1.xml": text}
    with ZipFile(BytesIO(archive(files))) as opened:
        assert separators_of_package(Package(opened)) == UNKNOWN
    assert thread_time() - started < 10


@pytest.mark.parametrize(
    ("codes", "texts", "tags", "shown"),
    [
        (["0", "#,##0.00 [$€-407]"], GERMAN, "", "2.180 1.234,50 €"),
        (['#,##0.00 "€"'], GERMAN, "", "2.180 1.234,50 €"),
        (["[$-40C]0.0"], ["Pièces livrées à Nîmes pour le client"], "", "2\u00a0180 1\u00a0234,50 €"),
        (
            ['#,##0.00 "kr"'],
            ["Åsa Sjöström, lön för året och det som inte"],
            "",
            "2\u00a0180 1\u00a0234,50 €",
        ),
        # Many words; the language that the file states most often, of few words.
        ([], ["Die Kosten sind im Vergleich zum Vorjahr nicht gestiegen"], "", "2.180 1.234,50 €"),
        ([], ["Umsatz"], "de-DE en-US de-DE", "2.180 1.234,50 €"),
        ([], ["Ventes"], "fr-CA", "2\u00a0180 1\u00a0234,50 €"),
        # Plain where the signs disagree, are weak or name a country with other separators.
        ([], ["The sales of each port"], "de-DE", "2180 1234.50 €"),
        (['"$"#,##0.00'], GERMAN, "", "2180 1234.50 €"),
        (["#,##0.00 [$CHF-807]"], MANY, "", "2180 1234.50 €"),
        ([], GERMAN, "fr-FR", "2180 1234.50 €"),
        # A repeated word is one; few words among many, of which only the first characters count.
        ([], ["für " * 9], "", "2180 1234.50 €"),
        ([], [*MANY, *NAMES], "", "2180 1234.50 €"),
        ([], [*MANY, *(name + "x" * 60 for name in NAMES)], "", "2.180 1.234,50 €"),
        ([], ["Umsatz"], "de-CH", "2180 1234.50 €"),
        (
            [],
            ["Los ingresos de la empresa han subido en el segundo trimestre y no bajan"],
            "",
            "2180 1234.50 €",
        ),
        # English by many words or a statement; unknown languages, with a format or a name alone.
        (["#,##0"], ["The sales of each port were not in the plan for this year"], "", "2,180 1,234.50 €"),
        ([], ["The sales of each port"], "en-GB", "2,180 1,234.50 €"),
        ([], ["Omsætning", "Kunde: The North Face"], "", "2180 1,234.50 €"),
        ([], ["Kunde: The North Face"], "da-DK", "2.180 1.234,50 €"),
        ([], ["Ventas"], "es-MX", "2,180 1,234.50 €"),
        (["0", "#,##0.00 [$€-407]"], ["Pieces"], "", "2180 1,234.50 €"),
        (['#,##0.00 "€"'], ["Mrs Müller"], "", "2180 1,234.50 €"),
        (['#,##0.00 "€"'], ["Travel", "Jürgen Müller", "Zürich", "José Peña"], "", "2180 1,234.50 €"),
    ],
)
def test_numbers_have_the_separators_of_the_language_of_their_file(
    codes: list[str], texts: list[str], tags: str, shown: str
):
    assert shown_with(separators_of(codes, texts, tags.split())) == shown


def test_literals_of_a_format_keep_their_points_and_commas(subtests: pytest.Subtests):
    for value, code, shown in (
        (84713000, r"0000\.00\.00", "8471.30.00"),
        (3, '"v2.1-"0', "v2.1-3"),
        (1234567.5, '#,##0.0 "(s. 4.2)"', "1.234.567,5 (s. 4.2)"),
        (0.075, "0.0%", "7,5%"),
        (0.25, "", "0,25"),
        (-0.5, 'General" kg"', "-0,5 kg"),
        (12345, "0.00E+00", "1,23E+04"),
    ):
        with subtests.test(code=code):
            assert shown_number(value, code, separators=(".", ",")) == shown
