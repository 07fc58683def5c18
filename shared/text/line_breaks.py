"""Line breaks within paragraphs: texts that a program wrapped at a column, such as mails.

A program breaks a line where the next word no longer fits: the line and that word are longer than the
longest line of the paragraph. Lines of verse, addresses and lists without marks are seldom so, and begin with
capitals. Where a line begins in lower case, a shorter one before it is enough.
"""

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import or_
from unicodedata import category

from shared.text.stemming import is_unspaced

# A paragraph whose longest line is shorter has lines of its own, such as an address.
MIN_WIDTH = 50
# The least length of a line that one in lower case continues.
MIN_CONTINUED = 30
# The least share of a paragraph's breaks that a program would make or that a line in lower case follows, and
# of those that are within a sentence.
MIN_SHARE, MIN_SHARE_IN_SENTENCES = 0.7, 0.25
# White space and the marks of quoted mails.
PREFIX = re.compile(r"[ \t]*(?:>[ \t]*)*")
_MARK = re.compile(r"(?:[-*+•–]|\d{1,3}[.)]|[a-zA-Z][.)]|\([a-zA-Z\d]{1,4}\))[ \t]")
# Headings, tables, rules, fences, tags, comments, prompts of a shell, definitions of links and footnotes,
# addresses.
_OWN_LINE = re.compile(
    r"#{1,6} |\||[-=*_~+`]{3,}|</?\w|<!|//|/\*|\$ |\.\. |:\w+:|\[[^\]\n]+\]:|[)}\]]|https?://"
)
# "Key: value", a speaker, the header of a mail.
LABEL = re.compile(r"[*_]*(\w)[^\n:.!?]{0,39}:[*_]*(?:[ \t]|\Z)")
# A line that is indented by so much more is code, except below an item.
INDENT_OF_CODE = 4
# Cells of a table that is drawn with spaces.
_COLUMNS = re.compile(r"\S(?: {3,}|\t+)\S")
_FENCE = re.compile(r"`{3}|~{3}")
_ENDS_STATEMENT = re.compile(r"[.!?:;{}\\|。！？]\W{0,2}\Z")
# For speed: a line of the least length before one that may continue it.
_CANDIDATE = re.compile(rf"[^\n]{{{MIN_CONTINUED}}}\n[ \t>]*(?![-*+•–|#])\S")


@dataclass(frozen=True, slots=True)
class _Line:
    start: int
    # Of the line without white space at its end.
    width: int
    content_start: int
    content: str
    depth: int

    def continues(self, other: "_Line") -> bool:
        """Whether this line may belong to the paragraph of the line before."""
        if self.depth != other.depth or not (self.content and other.content):
            return False
        label = LABEL.match(self.content)
        indent = self.content_start - self.start - (other.content_start - other.start)
        return not (
            _OWN_LINE.match(other.content)
            or _OWN_LINE.match(self.content)
            or _MARK.match(self.content)
            or (label and (not label[1].islower() or LABEL.match(other.content)))
            or _COLUMNS.search(other.content)
            or _COLUMNS.search(self.content)
            or (indent >= INDENT_OF_CODE and not _MARK.match(other.content))
        )


def unwrapped(text: str, starts: Container[int] = ()) -> str:
    """The text with spaces, as many, in place of the line breaks within its paragraphs and of the marks of
    quoted lines behind them. `starts`: the positions of lines that begin something."""
    if not _CANDIDATE.search(text):
        return text
    pieces: list[str] = []
    position = 0
    for before, line in _wrapped(_lines(text), starts):
        end = before.start + before.width
        pieces += [text[position:end], " " * (line.content_start - end)]
        position = line.content_start
    return "".join([*pieces, text[position:]])


def _lines(text: str) -> Iterator[_Line]:
    """The lines, those of fenced code as empty ones."""
    fence, start = "", 0
    for line in text.split("\n"):
        prefix = PREFIX.match(line)[0]  # type: ignore[index]
        content = line[len(prefix) :].rstrip()
        mark = _FENCE.match(content)
        if mark and (not fence or content.startswith(fence)):
            fence = "" if fence else mark.group()
        shown = "" if fence or mark else content
        yield _Line(start, len(prefix) + len(content), start + len(prefix), shown, prefix.count(">"))
        start += len(line) + 1


def _wrapped(lines: Iterator[_Line], starts: Container[int]) -> Iterator[tuple[_Line, _Line]]:
    """Each line that a program wrapped, with the line that continues it."""
    paragraph: list[_Line] = []
    for line in lines:
        if paragraph and not (
            line.continues(paragraph[-1]) and line.start not in starts and line.content_start not in starts
        ):
            yield from _breaks(paragraph)
            paragraph = []
        paragraph.append(line)
    yield from _breaks(paragraph)


def _goes_on(before: _Line, line: _Line) -> bool:
    """Whether the line begins without a capital, in any script, or with a number, within a statement."""
    first = line.content[0]
    # A number alone is one of a page. Lines of a log or of a list both begin with one.
    is_number = (first.isdigit() or category(first) == "Sc") and not line.content.isdigit()
    follows_word = before.content[-1].islower() and not before.content[0].isdigit()
    is_within = (is_number and follows_word) or (first.isalpha() and not first.isupper())
    return is_within and not _ENDS_STATEMENT.search(before.content)


def _is_full(before: _Line, line: _Line, width: int) -> bool:
    """Whether the first word of the line did not fit behind the one before."""
    word = line.content.split(maxsplit=1)[0]
    return before.width + 1 + len(word) > width and not is_unspaced(word)


def _breaks(paragraph: Sequence[_Line]) -> Iterator[tuple[_Line, _Line]]:
    width = max((line.width for line in paragraph), default=0)
    pairs = list(pairwise(paragraph))
    full = [_is_full(before, line, width) for before, line in pairs]
    goes_on = [_goes_on(before, line) for before, line in pairs]
    is_wrapped = (
        width >= MIN_WIDTH
        and sum(map(or_, full, goes_on)) >= MIN_SHARE * len(pairs)
        # Items without marks begin with capitals.
        and sum(goes_on) >= MIN_SHARE_IN_SENTENCES * len(pairs)
    )
    # Of items without marks in lower case the first begins so too.
    may_be_items = bool(pairs) and paragraph[0].content[0].islower()
    for pair, is_full, is_continued in zip(pairs, full, goes_on, strict=True):
        is_lower = is_continued and pair[1].content[0].islower()
        is_long = pair[0].width >= MIN_CONTINUED and not may_be_items
        if (is_wrapped and (is_full or (is_lower and not may_be_items))) or (is_lower and is_long):
            yield pair
