"""Statements of a passage: sentences, items of lists, rows of tables and lines "key: value"."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from shared.generation.grounding.markup import without_tags
from shared.text.line_breaks import PREFIX, unwrapped
from shared.text.sentences import sentences
from shared.text.stemming import content_words
from shared.text.word_lists import word_sets_by_language

# A row of more cells shows those with the question's words and those whose columns the question names, if it
# names any. If none of the latter has a number, it shows all its numbers.
MAX_CELLS = 4
MIN_WORDS = 3
_LINE = re.compile(r"[^\n]+")
_HEADING = re.compile(r"#{1,6} +")
_BULLET = re.compile(r"[-*+•–][ \t]+(?:\[[ xX]\][ \t]+)?")
_NUMBERED = re.compile(r"\d{1,2}[.)][ \t]+")
# "6. Liability" above "6.1 The total".
_CLAUSE = re.compile(r"(\d{1,3})\.?[ \t]+[^.!?:;\d]{1,60}")
_RULE = re.compile(r"[|\s]*:?-{2,}[-:|\s]*")
# Below a heading of Markdown or reStructuredText.
_UNDERLINE = re.compile(r"([-=~^\"'*+#:])\1{2,}\s*")
# No sentence and no item.
_TITLE = re.compile(r"(?![-*+•–] |\d{1,2}[.)] ).*[^\s.!?:;,]")
# Directives and fields of reStructuredText, targets of links.
_NO_TEXT = re.compile(r"\.\. [\w-]+::|:[\w-]+:(?!`)|\[[^\]\n]+\]:\s")
# Key and value are no sentences.
_FACT = re.compile(r"[*_]*(\w[^:|.?!\n]{0,39})[*_]*:[*_]*[ \t]+(\S.{0,80})(?<![.?!])")
# Headers of mails, in common languages.
_FRAME = re.compile(
    r"(from|to|cc|date|sent|subject|von|an|datum|betreff|de|à|objet|fra|til|dato|emne): ", re.IGNORECASE
)
# In any script, with closing quotation marks or brackets behind it.
QUESTION = re.compile(r"[?？؟⁇]\W*$")
_SPEAKER = re.compile(r"^[\w.' -]{2,40}: ")
_MARKUP = re.compile(
    r"(?P<ticks>`+)(?P<code>.+?)(?P=ticks)|!?\[(?P<link>[^\]\n]*)\]"
    # A target with a scheme may have spaces and brackets, as code has.
    r"\((?:\w+:(?:[^()\n]|\((?:[^()\n]|\([^()\n]*\))*\))*|(?:[^()\s]|\([^()\s]*\))*(?:\s+\"[^\"]*\")?)\)"
    r"|\*{2,3}"
    r"|(?<!\w)_{1,3}(?=\w)|(?<=[\w.!,;:])_{1,3}(?!\w)|(?<![\w*])\*(?=[^\s*])(?P<emphasis>[^*\n]+)(?<=\S)\*(?!\w)"
)
_lists_of = word_sets_by_language(__file__)


class StatementKind(Enum):
    SENTENCE = auto()
    ITEM = auto()
    ROW = auto()
    FACT = auto()


@dataclass(frozen=True, slots=True)
class Statement:
    """text[start:end] of a passage; `text` has no Markdown, and a row's has the names of its columns.
    `heading`: the section's, the question before it, or the line that introduces its list. `columns`: the
    names of a row's columns."""

    text: str
    start: int
    end: int
    heading: str
    kind: StatementKind
    columns: tuple[str, ...] = ()

    @property
    def stands_alone(self) -> bool:
        """Whether the statement is a sentence, and no answer to its heading."""
        return self.kind is StatementKind.SENTENCE and not QUESTION.search(self.heading)


def begins_with_pronoun(text: str, language: str | None, words: int = 1) -> bool:
    """Whether a pronoun is among the first words. `language`: a tag of the text's, if known."""
    pronouns = _lists_of(language)["pronouns"]
    return any(word.casefold() in pronouns for word in re.findall(r"\w+", text)[:words])


def without_markup(text: str) -> str:
    """The text without the marks of Markdown and HTML: the words of links, code without ticks."""
    shown = _MARKUP.sub(
        lambda mark: mark["code"] or without_markup(mark["link"] or mark["emphasis"] or ""),
        without_tags(text),
    )
    return re.sub(r"[ \t]{2,}", " ", shown).strip()


def statements(
    text: str, lang: str | None, question: frozenset[str], section: str = "", before: str = ""
) -> Iterator[Statement]:
    """The statements in order, without headings, introductions of lists, questions and fragments. `question`:
    its stems. `section`: the heading above the passage; `before`: the header of its table or the question
    that it answers."""
    lines = [(match.start(), match.group()) for match in _LINE.finditer(unwrapped(text))]
    facts = _facts(lines)
    is_in_table = before.startswith("|")
    header = cells_of(before) if is_in_table else [""]
    heading = without_markup(_HEADING.sub("", before)) if before and not is_in_table else section
    introduction = ""
    for number, (start, whole_line) in enumerate(lines):
        indent = len(PREFIX.match(whole_line)[0])  # type: ignore[index]
        begin, line = start + indent, whole_line[indent:].rstrip()
        below, following = lines[number + 1] if number + 1 < len(lines) else (0, "")
        if line.startswith("|"):
            if _RULE.fullmatch(following):
                header = cells_of(line)
            elif not _RULE.fullmatch(line) and (row := _row(cells_of(line), header, question)):
                above, columns = introduction or heading, tuple(header)
                yield Statement(_closed(row), begin, begin + len(line), above, StatementKind.ROW, columns)
            continue
        header = [""]
        hashes = _HEADING.match(line)
        is_underlined = below == start + len(whole_line) + 1 and _UNDERLINE.fullmatch(following)
        if hashes or (is_underlined and _TITLE.fullmatch(line)):
            heading, introduction = without_markup(line[hashes.end() if hashes else 0 :]), ""
            continue
        if _NO_TEXT.match(line):
            continue
        if (clause := _CLAUSE.fullmatch(line)) and following.lstrip().startswith(f"{clause[1]}.1"):
            heading, introduction = without_markup(line), ""
            continue
        bullet = _BULLET.match(line)
        marker = bullet or _NUMBERED.match(line)
        content = line[marker.end() :] if marker else line
        parts = () if _FRAME.match(line) else sentences(content, lang)
        # An item that begins with a question is a heading and its answer.
        is_item = marker and not (parts and QUESTION.search(without_markup(content[: parts[0].end])))
        if start in facts or is_item:
            # The number of an item is shown.
            skip = bullet.end() if bullet else 0
            kind = StatementKind.FACT if start in facts else StatementKind.ITEM
            text_of_line = _closed(without_markup(line[skip:]))
            yield Statement(text_of_line, begin + skip, begin + len(line), introduction or heading, kind)
            continue
        begin, line, introduction = begin + len(line) - len(content), content, ""
        for place_in_line, item in enumerate(parts):
            shown = without_markup(line[item.start : item.end])
            if QUESTION.search(shown):
                # A question behind other sentences of its line has no answer there.
                heading = heading if place_in_line else shown
            elif shown.endswith(":"):
                introduction = shown[:-1]
            elif len(content_words(_SPEAKER.sub("", shown))) >= MIN_WORDS:
                yield Statement(shown, begin + item.start, begin + item.end, heading, StatementKind.SENTENCE)


def _facts(lines: Sequence[tuple[int, str]]) -> set[int]:
    """The starts of lines "key: value": two or more in a row, with different keys, or one with a number and
    few words. Speakers of a transcript repeat."""
    starts: set[int] = set()
    run: dict[str, int] = {}
    end = -1
    for start, line in lines:
        fact = None if _FRAME.match(line) else _FACT.fullmatch(line.strip())
        if not fact or start != end + 1 or fact[1] in run:
            run = {}
        if fact:
            run[fact[1]] = start
            value = fact[2]
            is_number = any(map(str.isdigit, value)) and len(content_words(value)) < MIN_WORDS
            starts |= set(run.values()) if len(run) > 1 or is_number else set()
        end = start + len(line)
    return starts


def cells_of(line: str) -> list[str]:
    return [without_markup(cell).replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip("|"))]


def _row(cells: list[str], header: list[str], question: frozenset[str]) -> str:
    """The row's name, and its cells with the names of their columns."""
    names = header if len(header) == len(cells) else [""] * len(cells)
    rest = [(name, cell) for name, cell in list(zip(names, cells, strict=True))[1:] if cell]
    if len(rest) > MAX_CELLS:
        named = [pair for pair in rest if question & content_words(pair[0])]
        if named:
            # Without a number, the question names the row by a column, and asks for a value of another.
            is_of_another = not any(map(_is_number, named))
            rest = [
                pair
                for pair in rest
                if question & content_words(" ".join(pair)) or (is_of_another and _is_number(pair))
            ]
    values = ", ".join(f"{name} {cell}".strip() for name, cell in rest)
    return ": ".join(filter(None, (cells[0], values)))


def _is_number(pair: tuple[str, str]) -> bool:
    return pair[1].lstrip("-+(€$£ ")[:1].isdigit()


def _closed(text: str) -> str:
    return text if not text or text[-1] in ".!?:;,…" else f"{text}."
