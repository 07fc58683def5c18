"""Matches as one text for a caller's prompt, by document, without repetition."""

from collections.abc import Sequence

from shared.text.citation_marks import GAP, escape_headings, under_heading
from shared.text.token_count import count_tokens, fit_token_budget
from shared.types import Match


def concatenate(matches: Sequence[Match], budget: int) -> str:
    """The best matches within `budget` tokens, document by document, the best document first. Overlapping
    chunks are joined, and gaps are marked."""
    chosen = fit_token_budget(matches, budget, lambda match: count_tokens(_block([match])))
    # A best match beyond the budget is returned alone.
    chosen = chosen or tuple(matches[:1])
    by_document: dict[str, list[Match]] = {}
    for match in chosen:
        by_document.setdefault(match.document_id, []).append(match)
    return "\n\n".join(map(_block, by_document.values()))


def _block(matches: Sequence[Match]) -> str:
    first = matches[0]
    runs, end = [""], None
    for match in sorted(matches, key=lambda match: match.span):
        start = match.span[0]
        if end is None:
            runs = [match.text]
        elif match.span[1] <= end:
            continue
        elif start <= end:
            runs[-1] += match.text[end - start :]
        else:
            runs.append(match.text)
        end = match.span[1]
    return under_heading(first.title, first.uri, f"\n{GAP}\n".join(map(escape_headings, runs)))
