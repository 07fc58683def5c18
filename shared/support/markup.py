"""What of an answer would do more than be read: pictures, links, HTML. A picture's or a link's address may
carry away what was asked, so none is shown that no source has."""

import re

_CODE = re.compile(r"(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_PICTURE = re.compile(r"!\[")
_TARGET = re.compile(r"\]\(\s*(?:<([^>]*)>|([^\s)]+))|^\s*\[[^\]]+\]:\s*(?:<([^>]*)>|(\S+))")
# Known ones, and any that has attributes: browsers obey those of elements that they do not know.
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


def has_picture(text: str) -> bool:
    """Whether it shows a picture, which nobody can have read of."""
    return _PICTURE.search(_CODE.sub(" ", text)) is not None


def without_tags(text: str) -> str:
    """The text without HTML but line breaks, and what the removal would make into HTML."""
    done, at = "", 0
    for code in _CODE.finditer(text):
        done += _untagged(text[at : code.start()]) + code.group()
        at = code.end()
    return done + _untagged(text[at:])


def code_in(text: str) -> list[str]:
    """What stands in backticks."""
    return [found[2].strip() for found in _CODE.finditer(text) if re.search(r"\w", found[2])]


def targets(text: str) -> list[str]:
    """What its links lead to."""
    return [next(part for part in found.groups() if part is not None) for found in _TARGET.finditer(text)]


def _untagged(text: str) -> str:
    while (rest := _TAG.sub("", text)) != text:
        text = rest
    return text
