"""Main content of a web page: its elements without menus, banners, dialogs and comments.

trafilatura tells which texts are content. The elements of these texts are kept as they are, because it writes
neither lists in cells nor all articles of a page."""

from collections import defaultdict
from typing import Any

from lxml import etree

from shared.ingestion.parsers.html_blocks import HEADINGS, common, drop, leaves, length_of, letters_of, prose

# A text of trafilatura that is shorter is no evidence, and a longer one takes too much memory.
MIN_CHARACTERS, MAX_CHARACTERS = 100, 2_000_000
# Characters of a sample, by which a text is compared with trafilatura's.
SAMPLE = 12
# The share of trafilatura's text in the content, and the smallest share of `main`, or of all articles.
COVERED, SHARE = 0.9, 0.6
# Characters without links. Shorter texts that trafilatura omits are no content: labels, bylines, buttons; and
# shorter elements whose names are those of advertisements, lists of tags and so on.
SHORT, LONG = 100, 1000
# Shorter texts do not tell where the content is.
SENTENCE = 40
# Their short texts are content.
_KEPT = {"table", "dl", "pre", "code", "details", "math", "li"} | HEADINGS
_TITLES = {"summary", "dt", *HEADINGS}
_ROLES = ("navigation", "search", "dialog", "alertdialog", "menu", "menubar", "tooltip")
_OMITTED = etree.XPath(
    ".//*[self::script or self::style or self::noscript or self::iframe or self::object or self::embed"
    " or self::template or self::dialog or self::nav or self::svg or @aria-hidden='true'"
    + "".join(f" or @role='{name}'" for name in _ROLES)
    + " or (@role='banner' or @role='contentinfo') and not(ancestor::main or ancestor::article)"
    # A question for consent has buttons, or is no section of a text.
    " or (self::div or self::section or self::aside or self::form)"
    " and re:test(concat(' ', @id, ' ', @class), '[ _-](cookie|consent|gdpr|onetrust)', 'i')"
    " and (not(.//h1 or .//h2 or .//h3 or .//h4)"
    " or .//*[self::button or self::input or @role='button' or self::a[not(@href) or starts-with(@href, '#')"
    " or starts-with(@href, 'javascript') or re:test(@class, 'btn|button', 'i')]])]",
    namespaces={"re": "http://exslt.org/regular-expressions"},
)
_FIELDS = etree.XPath(".//input | .//textarea")
# Buttons, and pictures that lead to other pages.
_CONTROLS = etree.XPath(
    f".//a//img | .//button[not({' or '.join(f'ancestor::{name}' for name in sorted(_TITLES))})]"
)


def main_content(root: Any) -> Any:
    """The element of the page with its main content, without other elements."""
    body = root.find("body")
    if body is None:
        return root
    _show(body)
    text = _Text(etree.tostring(root, encoding="unicode", method="html"))
    for element in list(body.iter()):
        if _is_hidden(element) and any(
            len(own) >= SHORT and own in text
            for own in ("".join(leaf.itertext()) for leaf in leaves(element))
        ):
            # Also content that scripts show: trafilatura takes it as such.
            _unhide(element)
    length = length_of(body)
    for element in _OMITTED(body):
        # A page may be in an element whose name or role is that of a banner.
        if next(element.iter("h1", "main", "article"), None) is None or 2 * length_of(element) < length:
            drop(element)
    cards = _parts_of_cards(body)
    inner = _with_text(body, text, COVERED)
    content = _with_text(body, text, 1)
    if content is body:
        content = _without_frame(body, cards)
    _drop_named(body, inner, text)
    articles = [each for each in body.iter("article") if next(each.iterancestors("article"), None) is None]
    articles = [each for each in articles if prose(each) >= SHORT]
    mains = [each for each in content.iterancestors() if each.tag == "main" or each.get("role") == "main"]
    if len(articles) > 1 and prose(inner) < SHARE * sum(map(prose, articles)):
        content = common([content, *articles])
    elif mains and prose(content) < SHARE * prose(mains[0]):
        content = mains[0]
    elif text:
        _drop_others(content, inner, text, cards)
    for element in _CONTROLS(content):
        drop(element)
    return content


def _show(body: Any) -> None:
    """Make visible what a reader makes visible: answers to questions, tabs."""
    for element in list(body.iter("template")):
        if element.get("shadowrootmode"):
            element.tag = "div"
    for element in list(body.iter("a")):
        # Links of headings to themselves.
        if (element.get("href") or "").startswith("#") and not letters_of("".join(element.itertext())):
            drop(element)
    controls = {
        control.get("aria-controls"): control for control in body.iter() if control.get("aria-controls")
    }
    for element in list(body.iter("div", "section", "dd", "p", "ul")):
        control, before = controls.get(element.get("id")), element.getprevious()
        is_answer = before is not None and before.tag in HEADINGS | {"dt", "button"}
        if (
            control is not None
            or is_answer
            or element.get("role") == "tabpanel"
            or element.get("hidden") == "until-found"
        ):
            _unhide(element)
        if control is not None and not any(each.tag in _TITLES for each in control.iterancestors()):
            label = etree.Element("h4")
            label.text, label.tail, element.text = "".join(control.itertext()), element.text, None
            element.insert(0, label)


def _is_hidden(element: Any) -> bool:
    style = (element.get("style") or "").lower().replace(" ", "")
    is_page = element.tag == "noscript" and prose(element) >= LONG
    return (
        is_page
        or element.get("hidden") is not None
        or "display:none" in style
        or "visibility:hidden" in style
    )


def _unhide(element: Any) -> None:
    element.tag = "div" if element.tag == "noscript" else element.tag
    for name in ("hidden", "style", "aria-hidden"):
        element.attrib.pop(name, None)


def _parts_of_cards(body: Any) -> set[Any]:
    """Headers, footers and asides of elements that recur."""
    parts: defaultdict[Any, list[Any]] = defaultdict(list)
    for element in body.iter("header", "footer", "aside"):
        parent = element.getparent()
        parts[element.tag, parent.tag, parent.get("class")].append(element)
    return {
        element
        for elements in parts.values()
        if len({element.getparent() for element in elements}) > 1
        for element in elements
    }


def _without_frame(body: Any, cards: set[Any]) -> Any:
    """The body's `main`, or the body without its header and footer."""
    mains = [each for each in body.iter("main") if 10 * length_of(each) > length_of(body)]
    if len(mains) == 1:
        return mains[0]
    length = length_of(body)
    for element in list(body.iter("header", "footer", "aside")):
        inside = element in cards or any(
            each.tag in ("article", "main", "section", "blockquote") for each in element.iterancestors()
        )
        if not inside and 2 * (own := length_of(element)) < length:
            length -= own
            drop(element)
    return body


class _Text:
    """trafilatura's text of a page."""

    def __init__(self, page: str) -> None:
        from trafilatura import extract

        main = extract(page, include_comments=False, include_formatting=False) or ""
        packed = letters_of(main)
        self._is_known = MIN_CHARACTERS <= len(packed) <= MAX_CHARACTERS
        self._lines = {letters_of(line) for line in main.splitlines()}
        self._samples = {packed[at : at + SAMPLE] for at in range(len(packed))} if self._is_known else set()

    def __bool__(self) -> bool:
        return self._is_known

    def __contains__(self, text: str) -> bool:
        """Whether most samples of the text are in it."""
        packed = letters_of(text)
        if len(packed) < SAMPLE:
            return packed in self._lines
        starts = range(0, len(packed) - SAMPLE + 1, SAMPLE)
        return 2 * sum(packed[at : at + SAMPLE] in self._samples for at in starts) >= len(starts)


def _with_text(body: Any, text: _Text, share: float) -> Any:
    """The innermost element with that share of the text, or more."""
    weights: dict[Any, int] = {}
    for leaf in leaves(body):
        own = "".join(leaf.itertext())
        if len(own) >= SENTENCE and own in text:
            for element in (leaf, *leaf.iterancestors()):
                weights[element] = weights.get(element, 0) + len(own)
    content, needed = body, share * weights.get(body, 0)
    while (
        text
        and (inner := next((each for each in content if weights.get(each, 0) >= needed > 0), None))
        is not None
    ):
        content = inner
    # A cell may have the whole page; a row alone is no table, and a paragraph has no heading.
    while (
        content.tag not in ("article", "body", "div", "main", "section", "table", "td")
        and content is not body
    ):
        content = content.getparent()
    return content


def _drop_named(body: Any, content: Any, text: _Text) -> None:
    """Drop comments of readers, and other elements whose names tell that they are no content."""
    from trafilatura.xpaths import OVERALL_DISCARD_XPATH, REMOVE_COMMENTS_AND_LISTS_XPATH

    for rules, longest in ((REMOVE_COMMENTS_AND_LISTS_XPATH, MAX_CHARACTERS), (OVERALL_DISCARD_XPATH, LONG)):
        for element in [each for rule in rules for each in rule(body)]:
            limit = longest if longest > LONG or content in element.iterancestors() else SHORT
            if (
                prose(element) < limit
                and not (limit == LONG and _is_section(element))
                and not any("".join(leaf.itertext()) in text for leaf in leaves(element))
            ):
                drop(element)


def _is_section(element: Any) -> bool:
    """Whether the element is a heading and more text than links: `social-work` is no list of social media."""
    headings = list(element.iter(*HEADINGS))
    below = length_of(element) - sum(map(length_of, headings))
    return (
        bool(headings) and 2 * (prose(element) - sum(map(prose, headings))) > below and not _FIELDS(element)
    )


def _drop_others(content: Any, inner: Any, text: _Text, cards: set[Any]) -> None:
    """Drop blocks that trafilatura omits: all outside of `inner`, and in it the short ones and titles of what
    was dropped."""
    following = ""
    for leaf in list(leaves(content)):
        own, around = "".join(leaf.itertext()), set(leaf.iterancestors())
        if leaf is content or leaf is inner or not own.strip():
            continue
        if own not in text:
            is_in_kept = any(each.tag in _KEPT - {"li"} for each in around)
            if leaf.tag in HEADINGS:
                is_kept = bool(following) and not (following in HEADINGS and following <= leaf.tag)
            else:
                is_kept = (
                    is_in_kept
                    or bool(around & cards or leaf in cards)
                    or (leaf.tag in _KEPT and prose(leaf) == length_of(leaf))
                )
            if inner not in around or (prose(leaf) < SHORT and not is_kept):
                drop(leaf)
                continue
        following = leaf.tag
