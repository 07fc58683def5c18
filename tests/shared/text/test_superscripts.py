"""Superscripts and subscripts of HTML in plain text."""

from shared.text.stemming import content_words
from shared.text.superscripts import with_scripts

CASES = {
    "3 × 10<sup>6</sup> and 10<sup>-6</sup>": "3 × 10⁶ and 10⁻⁶", "10<sup>3.5</sup>": "10^(3.5)",
    "12 m<SUP class='u'>3</SUP>": "12 m³",
    "Al<sub>2</sub>O<sub>3</sub>, SO<sub>4</sub><sup>2-</sup>": "Al₂O₃, SO₄²⁻", "kg·m<sup>−2</sup>": "kg·m⁻²",
    "remark<sup>4</sup>, two<sup>1,2</sup>": "remark⁴, two¹,²",
    "e<sup>-kt</sup> x<sup>n</sup> x<sup>2n</sup>": "e^(-kt) x^n x^(2n)",
    "V<sub>max</sub>, x<sub>i</sub>, a<sub>i,j</sub>": "V_max, x_i, a_(i,j)",
    "the 4<sup>th</sup>, 1<sup>er</sup>, M<sup>me</sup> Curie": "the 4th, 1er, Mme Curie",
    "Kiln<sup>®</sup>, Clay<sup>TM</sup>, price<sup>*</sup>": "Kiln®, ClayTM, price*",
    "as shown<sup>[4]</sup>": "as shown[4]", "2<sup>2<sup>3</sup></sup>": "2^(2³)",
    "<sup>1</sup> A note.": "¹ A note.", "word<sup>1 </sup>next": "word¹ next", "<sup>open": "<sup>open",
}  # fmt: skip


def test_superscripts_are_characters_or_marks():
    assert {text: with_scripts(text) for text in CASES} == CASES


def test_a_formula_is_found_with_plain_digits():
    assert content_words("CO₂") == content_words("CO2")
