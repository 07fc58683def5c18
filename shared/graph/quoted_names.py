"""Names in quotation marks, and titles in brackets; quoted speech is no name."""

import re
from collections.abc import Iterator

from shared.graph.entity_types import kind_of
from shared.graph.mentions import Mention
from shared.graph.stopwords import COMMON, LOWERCASE_IN_TITLES
from shared.graph.tokens import WORD
from shared.text.stemming import is_unspaced

_INSIDE = 80
# Each kind has its own pattern, since an apostrophe closes no other mark.
_PAIRS = (
    ("《", "》", "work"), ("〈", "〉", "work"), ("『", "』", "work"), ("「", "」", ""), ("«", "»", ""),
    ("“", "”", ""), ("„", "[“”]", ""), ("‘", "’", ""), ("‚", "[‘’]", ""), ('"', '"', ""), ("‹", "›", ""),
)  # fmt: skip
_QUOTED = re.compile(
    "|".join(
        rf"(?<![\w]){opening}(?P<i{number}>[^\n{opening}{closing.strip('[]')}]{{2,{_INSIDE}}}){closing}(?!\w)"
        if opening in "‘‚"
        else rf"{opening}(?P<i{number}>[^\n{opening}{closing.strip('[]')}]{{2,{_INSIDE}}}){closing}"
        for number, (opening, closing, _) in enumerate(_PAIRS)
    )
)
_ANY = re.compile('[《〈『「«“„‘‚"‹]')
_CALLED = re.compile(
    r"(?:called|named|titled|entitled|dubbed|known as|nicknamed|genannt|namens|appelée?|nommée?|llamad[oa])"
    r"\W{0,2}$",
    re.IGNORECASE,
)
_WORK = re.compile(
    r"\b(?:film|movie|song|album|novel|book|poem|play|single|series|episode|opera|painting|story|track|show|game"
    r"|Film|Lied|Buch|Roman|roman|livre|chanson|película|canción|libro)s?\W{0,3}$",
)
_SPEECH = re.compile(r"[,.;:…](?<!\w\.\w\.)$")
_LETTER = re.compile(r"[^\W\d_]")


def quoted_names_in(text: str) -> Iterator[Mention]:
    if not _ANY.search(text):
        return
    for match in _QUOTED.finditer(text):
        group = str(match.lastgroup)
        inside = match[group]
        name = inside.strip()
        before = text[max(0, match.start() - 16) : match.start()]
        if not _LETTER.search(name) or not (_reads_as_name(name) or _CALLED.search(before)):
            continue
        kind = _PAIRS[int(group[1:])][2] or ("work" if _WORK.search(before) else kind_of(name))
        start = match.start(group) + len(inside) - len(inside.lstrip())
        yield Mention(start, start + len(name), name, kind)


def _reads_as_name(name: str) -> bool:
    """Whether the text is capitalized as a name or a title, or, in a script without case, is short."""
    if _SPEECH.search(name) and not is_unspaced(name):
        return False
    words = WORD.findall(name)
    if not words:
        return 1 < len(name) <= 40
    if not any(word[0].isupper() or word[0].islower() for word in words):
        return len(name) <= 40 and len(words) <= 6 and not name.endswith(("。", "、", "？"))
    if len(words) > 10 or (len(words) == 1 and words[0].casefold() in COMMON):
        return False
    return words[0][0].isupper() and all(
        word[0].isupper() or word[0].isdigit() or word.casefold() in LOWERCASE_IN_TITLES for word in words
    )
