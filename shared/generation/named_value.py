"""Value that a question names word for word: by its key, or by its row and its column.

The similarity of a question and a passage of many values is low, even where one of them is the answer.
"""

import re
from collections.abc import Sequence

from shared.generation.passage_statements import Statement, StatementKind, cells_of, statements
from shared.text.stemming import content_words, question_words
from shared.types import Match

# Names no row.
_YEAR = re.compile(r"(?:19|20)\d\d")
# A shorter key is in questions on other things, such as "Date".
MIN_WORDS_OF_KEY = 2


def names_value(question: str, matches: Sequence[Match]) -> bool:
    """Whether the question has all words of a key, or of one cell of a row and of the column of another."""
    words = question_words(question)
    return any(
        _is_named(item, match.text[item.start : item.end], words)
        for match in matches
        for item in statements(match.text, match.lang, words, before=match.header)
    )


def _is_named(item: Statement, text: str, words: frozenset[str]) -> bool:
    def has(name: str, least: int = 1) -> bool:
        return least <= len(own := content_words(name)) and own <= words

    if item.kind is not StatementKind.ROW:
        return item.kind is StatementKind.FACT and has(text.partition(":")[0], MIN_WORDS_OF_KEY)
    cells = cells_of(text)
    rows = {at for at, cell in enumerate(cells) if has(cell) and not _YEAR.fullmatch(cell.strip())}
    columns = {
        at for at, (name, cell) in enumerate(zip(item.columns, cells, strict=False)) if cell and has(name)
    }
    return any(row != column for row in rows for column in columns)
