"""Candidates of an extractive answer: the statements of the cited documents' matches."""

from collections import defaultdict
from collections.abc import Sequence

from shared.generation.passage_statements import Statement, StatementKind, cells_of, statements
from shared.text.stemming import content_words, question_words
from shared.types import Citation, ExtractedSentence, Match

Candidates = dict[ExtractedSentence, Statement]


def candidates_of(question: str, matches: Sequence[Match], citations: Sequence[Citation]) -> Candidates:
    """The distinct statements with words in the matches of cited documents, by document and position."""
    numbers = {citation.match.document_id: number for number, citation in enumerate(citations, start=1)}
    words = question_words(question)
    by_position: dict[tuple[int, int], tuple[ExtractedSentence, Statement]] = {}
    for match in matches:
        number = numbers.get(match.document_id)
        if number is None:
            continue
        for item in statements(match.text, match.lang, words, match.section_title, match.header):
            start, end = match.span[0] + item.start, match.span[0] + item.end
            # A row also has the words of the cells that are not shown.
            row = match.text[item.start : item.end] if item.kind is StatementKind.ROW else ""
            item_words = content_words(f"{item.text} {row}")
            sentence = ExtractedSentence(item.text, number, match, start, end, item_words)
            if sentence.words:
                # Chunks overlap: a sentence of a document counts once.
                by_position.setdefault((number, start), (sentence, item))
    return _matching_rows(words, dict(by_position[at] for at in sorted(by_position)))


def _matching_rows(words: frozenset[str], candidates: Candidates) -> Candidates:
    """The candidates without rows that have only some of the question's words that another row of the table
    has. The names of columns hold for all rows, except in a cell that has no further word."""
    cells: dict[tuple[int, str], dict[ExtractedSentence, frozenset[str]]] = defaultdict(dict)
    for sentence, item in candidates.items():
        if item.kind is StatementKind.ROW:
            first = sentence.match.span[0]
            row = sentence.match.text[sentence.start - first : sentence.end - first]
            of_cells = map(content_words, cells_of(row))
            named = (words & content_words(row)) - content_words(" ".join(item.columns))
            whole = frozenset[str]().union(*(cell for cell in of_cells if cell <= words))
            cells[sentence.number, item.heading][sentence] = named | whole
    worse = {
        sentence
        for rows in cells.values()
        for sentence, own in rows.items()
        if any(own < other for other in rows.values())
    }
    return {sentence: item for sentence, item in candidates.items() if sentence not in worse}


def context_words(sentence: ExtractedSentence, item: Statement) -> frozenset[str]:
    return content_words(f"{sentence.match.title} {item.heading}")


def after_heading(heading: str, text: str) -> str:
    return f"{heading}: {text}" if heading else text
