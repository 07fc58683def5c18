"""Markup in answers: pictures, links, HTML, quotation marks.

The address of a picture or a link may send the conversation to a stranger, so an answer shows no address that
no source has.
"""

import re
from collections.abc import Callable
from html import unescape

from shared.text.superscripts import with_scripts

_CODE = re.compile(r"(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_PICTURE = re.compile(r"!\[")
_TARGET = re.compile(r"\]\(\s*(?:<([^>]*)>|([^\s)]+))|^\s*\[[^\]]+\]:\s*(?:<([^>]*)>|(\S+))")
# Known elements, and any with attributes: browsers obey attributes of unknown elements.
_NAMES = (
    "a|abbr|address|area|article|aside|audio|b|base|blockquote|body|button|canvas|center|cite|code|dd|del|div"
    "|dl|dt|em|embed|fieldset|figure|font|footer|form|frame|frameset|h[1-6]|head|header|hr|html|i|iframe|img"
    "|input|ins|kbd|label|li|link|main|map|mark|math|menu|meta|nav|object|ol|option|p|picture|pre|q|s|samp"
    "|script|section|select|small|source|span|strike|strong|style|sub|summary|sup|svg|table|tbody|td"
    "|template|textarea|tfoot|th|thead|title|tr|track|tt|u|ul|var|video"
)
_TAG = re.compile(
    rf"<(?!br\s*/?>)(?:/?(?:{_NAMES})(?=[\s/>])[^<>]*>?|/?[a-z][\w:-]*(?:[\s/][^<>]*=[^<>]*>?|\s*/>)|!--.*?(?:-->|$)"
    r"|![a-z][^<>]*>?)",
    re.IGNORECASE,
)
# Rare quotation marks.
_MARKS = str.maketrans("＂❝❞❛❜‟‛〝〞〟＇〈〉", "\"“”‘’“‘“””'《》")
_QUOTED = re.compile(r"``(?!`)([^`'\n]*)''|(?<![\w'])''(?!')([^'\n]+)''(?!')")
_QUOTING = re.compile(r"<(/?)(?:q|blockquote)(?:\s[^<>]*)?>", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:#\w{1,8}|[lr]s?aquo|[lr][ds]quo|[bs][db]?quo|quot|apos|prime);", re.IGNORECASE)
_INCHES = re.compile(r"(?<!\d)″")


def has_picture(text: str) -> bool:
    """Whether the text shows a picture, which no source supports."""
    return _PICTURE.search(_CODE.sub(" ", text)) is not None


def displayable(text: str) -> str:
    """The text as it may be shown: with usual quotation marks, and without HTML."""
    return without_tags(with_plain_marks(text))


def without_tags(text: str) -> str:
    """The text without HTML except line breaks, with characters for superscripts; the result contains no new
    HTML either."""
    return _outside_code(text, _untagged)


def with_plain_marks(text: str) -> str:
    """The text with the quotation marks that quotations.py knows instead of those of HTML and TeX."""
    text = _QUOTED.sub(lambda match: f"“{match[1] or match[2] or ''}”", text)
    return _outside_code(text, _plain_marks)


def _outside_code(text: str, change: Callable[[str], str]) -> str:
    output, at = "", 0
    for code in _CODE.finditer(text):
        output += change(text[at : code.start()]) + code.group()
        at = code.end()
    return output + change(text[at:])


def _plain_marks(text: str) -> str:
    text = _QUOTING.sub(lambda match: "”" if match[1] else "“", _ENTITY.sub(_mark, text))
    return _INCHES.sub('"', text.translate(_MARKS))


def _mark(entity: re.Match[str]) -> str:
    # No entity may become the beginning of a tag.
    character = unescape(entity.group())
    return character if character in "\"'“”„«»‹›‘’‚′″" else entity.group()


def code_spans(text: str) -> list[str]:
    return [code[2].strip() for code in _CODE.finditer(text) if re.search(r"\w", code[2])]


def link_targets(text: str) -> list[str]:
    return [next(part for part in target.groups() if part is not None) for target in _TARGET.finditer(text)]


def _untagged(text: str) -> str:
    text = with_scripts(text)
    while (rest := _TAG.sub("", text)) != text:
        text = rest
    return text
