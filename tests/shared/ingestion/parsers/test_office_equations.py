"""Equations of Office files as LaTeX."""

import pytest
from lxml import etree

from shared.ingestion.parsers.office_equations import equation
from tests.shared.ingestion.parsers.office_files import NAMESPACES


def m(text: str, properties: str = "") -> str:
    return f"<m:r><m:rPr>{properties}</m:rPr><m:t>{text}</m:t></m:r>"


def part(name: str, *arguments: tuple[str, str], properties: str = "") -> str:
    inner = "".join(f"<m:{argument}>{content}</m:{argument}>" for argument, content in arguments)
    return f"<m:{name}><m:{name}Pr>{properties}</m:{name}Pr>{inner}</m:{name}>"


def sign(name: str, value: str) -> str:
    return f'<m:{name} m:val="{value}"/>'


CASES: list[tuple[str, str]] = [
    # Tracked changes: of runs, of a structure, and of a run's own mark.
    (m("a") + f"<w:del>{m('x')}</w:del><w:ins>{m('b')}</w:ins>", "ab"),
    (part("f", ("num", f"<w:ins>{m('1')}</w:ins>"), ("den", f"<w:del>{m('2')}</w:del>{m('4')}")),
     r"\frac{1}{4}"),
    (part("f", ("num", m("1")), ("den", ""), properties="<m:ctrlPr><w:del/></m:ctrlPr>"), "1"),
    ("<m:r><w:rPr><w:del/></w:rPr><m:t>x</m:t></m:r>" + m("y"), "y"),
    # Brackets.
    (part("d", ("e", m("x")), ("e", m("y"))), r"\left( x | y \right)"),
    (part("d", ("e", m("x")), ("e", m("y")), properties=sign("sepChr", ",")), r"\left( x , y \right)"),
    (part("d", ("e", m("x")), properties=sign("begChr", "(") + sign("endChr", "]")), r"\left( x \right]"),
    (part("d", ("e", m("x")), properties=sign("begChr", "{") + sign("endChr", "")), r"\left\{ x \right."),
    (part("d", ("e", part("f", ("num", m("n")), ("den", m("k")), properties=sign("type", "noBar")))),
     r"\binom{n}{k}"),
    # Operators, accents and braces, also of unknown signs.
    (part("nary", ("sub", m("i")), ("sup", ""), ("e", m("x")), properties=sign("chr", "∑")), r"\sum_{i} x"),
    (part("nary", ("sub", m("i")), ("e", m("x")), properties=sign("chr", "⨁")), "⨁_{i} x"),
    (part("acc", ("e", m("x")), properties=sign("chr", "̂")), r"\hat{x}"),
    (part("acc", ("e", m("x")), properties=sign("chr", "̄")), r"\bar{x}"),
    (part("groupChr", ("e", m("x"))), r"\underbrace{x}"),
    (part("bar", ("e", m("x")), properties=sign("pos", "top")), r"\overline{x}"),
    # Structures.
    (part("sSup", ("e", m("x")), ("sup", m("2"))), "x^{2}"),
    (part("sSup", ("e", part("sSup", ("e", m("x")), ("sup", m("2")))), ("sup", m("3"))), "{x^{2}}^{3}"),
    (part("sPre", ("sub", m("6")), ("sup", m("14")), ("e", m("C"))), "{}_{6}^{14}C"),
    (part("rad", ("deg", ""), ("e", m("x")), properties="<m:degHide/>"), r"\sqrt{x}"),
    (part("rad", ("deg", m("3")), ("e", m("x"))), r"\sqrt[3]{x}"),
    (part("f", ("num", m("a+b")), ("den", m("2")), properties=sign("type", "lin")), "(a+b)/2"),
    (part("func", ("fName", m("cos")), ("e", m("x"))), r"\cos{x}"),
    (part("limLow", ("e", m("lim")), ("lim", m("x→0"))), r"\lim_{x→0}"),
    (part("limUpp", ("e", m("=")), ("lim", m("def"))), r"\overset{def}{=}"),
    (part("m", *(("mr", f"<m:e>{m(a)}</m:e><m:e>{m(b)}</m:e>") for a, b in ("ab", "cd"))),
     r"\begin{matrix} a & b \\ c & d \end{matrix}"),
    (part("eqArr", ("e", m("x=1")), ("e", m("y=2"))), r"\begin{aligned} x=1 \\ y=2 \end{aligned}"),
    (part("phant", ("e", m("x")), properties=sign("show", "0")) + m("y"), "y"),
    # Characters.
    (m("𝑥") + m("50%") + m("sin⁡"), r"x50\%\sin"),
    ('<m:r><w:rPr><w:rFonts w:ascii="Symbol"/></w:rPr><m:t>m</m:t></m:r>', "μ"),
    (m("if x is odd", "<m:nor/>"), r"\text{if x is odd}"),
    (m(r"\int_{0}x"), r"\int_{0}x"),
]  # fmt: skip


def test_equations_are_latex(subtests: pytest.Subtests):
    for xml, latex in CASES:
        with subtests.test(latex=latex):
            assert equation(etree.fromstring(f"<m:oMath {NAMESPACES}>{xml}</m:oMath>")) == f"${latex}$"
    # In a strict file.
    transitional, strict = (
        "schemas.openxmlformats.org/officeDocument/2006",
        "purl.oclc.org/ooxml/officeDocument",
    )
    names = NAMESPACES.replace(f"{transitional}/math", f"{strict}/math")
    half = part("f", ("num", m("1")), ("den", m("2")))
    assert equation(etree.fromstring(f"<m:oMath {names}>{half}</m:oMath>")) == r"$\frac{1}{2}$"
