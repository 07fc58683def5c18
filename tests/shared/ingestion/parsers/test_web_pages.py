"""Web pages: their main content as a reader sees it, and the reasons for which a page is no document."""

import json
from typing import Any

import pytest

from shared import PRODUCT
from shared.ingestion.parsers.web_pages import page
from shared.ingestion.web_page import forbids_index
from tests import website_server
from tests.website_server import FOOTER, MENU, SENTENCES

SENTENCE = "This was written for the people who work here, and they read it every day of the week."


def read(html: str) -> dict[str, Any]:
    ((_, text),) = page(html.encode()).parts
    parsed: dict[str, Any] = json.loads(text)
    return parsed


def main(html: str) -> str:
    """A page with this HTML in its main text."""
    body = f"{MENU}<main><h1>Kiln</h1>{html}{SENTENCES}</main>{FOOTER}"
    return f"<html><head><title>Kiln</title></head><body>{body}</body></html>"


# Names in which those of advertisements, of lists of links and of questions for consent occur.
NAMES = (
    "consent-information", "cookie-recipes", "gdpr", "social-work", "related-party", "share-capital",
    "tags-of-kilns", "newsletter-rules", "ad-hoc", "author-guidelines", "metadata", "banner-sizes", "barley",
)  # fmt: skip

CONTENT = {
    "a number in several elements": (main("<p>It is <b>12</b>.<b>50</b> euro.</p>"), ["It is 12.50 euro."]),
    "a list in a cell": (
        main("<table><tr><th>a</th><th>b</th></tr><tr><td>1<ul><li>x</li><li>y</li></ul></td><td>2</td></tr>"
        "</table>"), ["| a | b |\n| --- | --- |\n| 1 x; y | 2 |"]),
    "a table of links": (main("<table><tr><th>a</th></tr><tr><td><a href='/x'>one</a></td></tr></table>"),
     ["| a |\n| --- |\n| one |"]),
    "merged cells": (
        main("<table><tr><th>r</th><th>c</th></tr><tr><td rowspan=2>K</td><td>1</td></tr><tr><td>2</td></tr>"
        "</table>"), ["| K | 1 |\n| K | 2 |"]),
    "exponents": (main("<p>10<sup>6</sup> m<sup>3</sup></p>"), ["10⁶ m³"]),
    "all articles": (f"<main><article><h2>One</h2>{SENTENCES}</article><article><h2>Two</h2><p>The second "
     f"kiln.</p>{SENTENCES}</article></main>", ["## One", "## Two", "The second kiln."]),
    "short articles": (f"<div><article>{SENTENCES}</article>"
     + "".join(f"<article><h2>{n}</h2><p>Kiln {n} is for {SENTENCE}</p></article>" for n in range(9))
     + "</div>", ["Kiln 0 is", "Kiln 8 is"]),
    "an answer behind a button": (
        main("<h3><button aria-controls=a>Can I?</button></h3><div id=a hidden><p>For 14 days.</p></div>"),
        ["### Can I?\n\nFor 14 days."]),
    "an answer that is not displayed": (
        main("<h3>Can I?</h3><div style='display: none'><p>For 14 days.</p></div>"),
        ["### Can I?\n\nFor 14 days."]),
    "tabs": (
        main("<button role=tab aria-controls=l>Linux</button><button role=tab aria-controls=m>Mac</button>"
        "<div id=l role=tabpanel>Run apt.</div><div id=m role=tabpanel hidden>Run brew.</div>"),
        ["#### Linux\n\nRun apt.", "#### Mac\n\nRun brew."]),
    "an open shadow root": (
        main("<x-note><template shadowrootmode=open><p>Never above 300.</p></template></x-note>"),
        ["Never above 300."]),
    "a heading's link to itself": (main("<h2>Fire<a href='#i'>¶</a></h2><p>Go.</p>"), ["## Fire\n"]),
    "a note beside the text": (main("<aside><p>Never above 300.</p></aside>"), ["Never above 300."]),
    "a page in an aside": (f"<div><aside><h1>Kiln</h1>{SENTENCES}</aside></div>", ["# Kiln", SENTENCE]),
    "a page in a form": (f"<form id=page><div><h1>Kiln</h1>{SENTENCES}</div></form>", ["# Kiln", SENTENCE]),
    "a page in a cell": (
        f"<table><tr><td><a href='/'>menu</a></td><td><h1>Kiln</h1>{SENTENCES}</td></tr></table>",
        ["# Kiln", SENTENCE]),
    "deep elements": ("<div>" * 400 + f"<h1>Kiln</h1>{SENTENCES}" + "</div>" * 400, [SENTENCE]),
    "a zero byte": (main("<p>The ki\0ln has 5.</p>"), ["The kiln has 5."]),
    "a banner longer than the page": (
        f"<div class='cookie-banner'><p>{'We use cookies of the menu. ' * 40}</p></div><div class=text>"
        f"<h1>Kiln</h1><p>The kiln is hot.</p></div>", ["# Kiln\n\nThe kiln is hot."]),
    "a formula for eyes and for programs": (
        main("<p>It is <math><semantics><mi>E</mi><annotation encoding='application/x-tex'>E=m</annotation>"
        "</semantics></math><span aria-hidden=true>E=m</span>.</p>"), ["It is $E=m$."]),
    "headers and footers of cards": (f"{MENU}<div>"
     + "".join(f"<div class=card><header><h3>Kiln {n}</h3></header><p>Kiln {n} is for {SENTENCE}</p>"
     f"<footer>Part {n}77</footer></div>" for n in range(9)) + f"</div>{FOOTER}",
     ["### Kiln 0\n\nKiln 0 is for", "Part 077", "### Kiln 8", "Part 877"]),
    "names of sections": (
        main("".join(f"<section class='{name}'><h2>{name}</h2><p>Rule {number} holds.</p></section>"
                     for number, name in enumerate(NAMES))),
        [f"## {name}\n\nRule {number} holds." for number, name in enumerate(NAMES)]),
    "a banner in the text": (main("<div role=banner><p>Never above 300.</p></div>"), ["Never above 300."]),
    "a list of links": (
        "<main><h1>Guides</h1><ul><li><a href='/1'>Guide one</a></li><li><a href='/2'>Guide two</a></li>"
        "</ul></main>", ["- Guide one\n- Guide two"]),
    "lines, code and numbers of lists": (
        main("<p>Road 5<br>Town</p><pre>a\n  b</pre><button>Copy</button><ol start=5><li>five</li></ol>"),
        ["Road 5\nTown", "a\n  b", "5. five"]),
    "a short page": (f"{MENU}<main><h1>Kiln</h1><p>It is hot.</p></main>{FOOTER}", ["# Kiln\n\nIt is hot."]),
}  # fmt: skip


@pytest.mark.parametrize("name", CONTENT)
def test_a_page_has_the_text_that_a_reader_sees(name: str):
    html, texts = CONTENT[name]
    parsed = read(html)
    for text in texts:
        assert text in parsed["text"]
    for other in ("menu", "footer", "Copy", "¶"):
        assert other not in parsed["text"]
    assert parsed["fault"] is None


def small(title: str, text: str = "Go to the start page.", head: str = "") -> str:
    return website_server.small(title, text, head).decode()


FAULTS = {
    small("Page not found - Acme"): "not_found",
    small("404"): "not_found",
    small("Oops! That page can’t be found."): "not_found",
    small("We couldn't find that page | Acme"): "not_found",
    small("Seite nicht gefunden – Acme"): "not_found",
    small("Beim Bäcker: Seite nicht gefunden"): "not_found",
    small("Custom Ink - Page not found"): "not_found",
    small("ページが見つかりません"): "not_found",
    "<title>Acme</title><h1>Error 404: page not found</h1><p>Try the search.</p>": "not_found",
    "<title>Acme</title><noscript>Enable JavaScript.</noscript><div id=root></div>": "needs_javascript",
    "<title>Acme</title><script></script><header>Acme</header><app-root>Wait</app-root>": "needs_javascript",
    "<title>Acme</title><script src=a></script><p>Please turn on JavaScript.</p>": "needs_javascript",
    "<title>Acme</title><form>Your name <input name=a><input type=password></form>": "login",
    small("Sign in - Acme", "<form><input name=user></form>"): "login",
    f"<title>Before you continue</title><p>{'We use data. ' * 99}</p><button>Accept all</button>": "consent",
    small("Just a moment..."): "unavailable",
    small("Site is under maintenance"): "unavailable",
    small("Moved", head="<meta http-equiv=refresh content='0; url=/new'>"): "redirect",
    "<title>Acme</title><body></body>": "no_text",
    # Pages of these subjects are documents.
    small("Room 404", "It has a projector."): None,
    small("Error: license key not found", "Copy the key."): None,
    small("404 Not Found - HTTP", SENTENCE * 9): None,
    small("Error: page not found when saving", "Save it as a copy."): None,
    small("How to fix page not found errors", "Clear the cache."): None,
    small("Fehler: Seite nicht gefunden beim Drucken", "Neu starten."): None,
    small("Erreur : page introuvable après une mise à jour", "Videz le cache."): None,
    "<title>Sign in</title><header><form><input type=search></form></header><p>Touch the key.</p>": None,
    small("Sign in", "To sign in, touch the key."): None,
    small("JavaScript", "JavaScript is a language of pages. " * 9, "<script></script>"): None,
    small("Privacy settings", "Open the settings and choose. " * 9): None,
}  # fmt: skip


@pytest.mark.parametrize("html", FAULTS)
def test_a_page_without_content_has_a_fault(html: str):
    assert read(html)["fault"] == FAULTS[html]


@pytest.mark.parametrize(
    ("meta", "is_asked"),
    [
        ("<meta name=robots content='noindex, nofollow'>", True),
        ("<META NAME=Robots CONTENT=NONE>", True),
        ("<meta name=citerow content=noindex>", True),
        ("<meta name=googlebot content=noindex>", False),
        ("<meta name=robots content='index, max-image-preview:none'>", False),
    ],
)
def test_a_page_may_ask_not_to_be_indexed(meta: str, is_asked: bool):
    assert forbids_index(read(small("Kiln", SENTENCE, meta))["robots"], PRODUCT) is is_asked
