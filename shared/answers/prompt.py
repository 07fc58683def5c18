"""What a model is told that answers sentence by sentence, each with the numbers of the excerpts."""

import secrets
from collections.abc import Sequence
from typing import Any

from shared.generate import SYSTEM, TEMPERATURE
from shared.policy import fit
from shared.tokens import count_tokens
from shared.types import Match

ASKED = (
    "Context:\n{context}\n\nQuestion: {question}\n\n"
    "Instructions: Answer the question based ONLY on the context above, in short plain sentences. Keep to "
    "its words, names and numbers. End every sentence with the number of the excerpt that it is from, such "
    "as [1] or [1][3]. Put in quotation marks only what an excerpt says word for word. If the context "
    "doesn't contain enough information, say so and nothing else."
)


def request(
    question: str, matches: Sequence[Match], budget: int, model: str, max_tokens: int
) -> dict[str, Any]:
    """A chat completion to ask for, over the matches that fit so many tokens, numbered by their places."""
    nonce = secrets.token_hex(8)
    context = _numbered(matches, nonce, budget)
    return {
        "model": model,
        "messages": [
            {"role": "system", "content": SYSTEM.format(nonce=nonce)},
            {"role": "user", "content": ASKED.format(context=context, question=question)},
        ],
        "temperature": TEMPERATURE,
        "max_tokens": max_tokens,
    }


def _numbered(matches: Sequence[Match], nonce: str, budget: int) -> str:
    excerpts = {match.chunk_id: _excerpt(match, place, nonce) for place, match in enumerate(matches, start=1)}
    chosen = fit(matches, budget, lambda match: count_tokens(excerpts[match.chunk_id]))
    # Not even the best fits: it goes alone, and the model's own limit decides.
    return "".join(excerpts[match.chunk_id] for match in chosen or matches[:1]).rstrip("\n")


def _excerpt(match: Match, number: int, nonce: str) -> str:
    title = " ".join(match.title.split())
    return f"<<source-{nonce}>>\n[{number}] Title: {title}\n{match.text}\n<<end-{nonce}>>\n"
