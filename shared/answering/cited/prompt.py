"""The request to a model that answers sentence by sentence, each with the numbers of its excerpts."""

from collections.abc import Sequence
from typing import Any

from shared.generation.generators import TEMPERATURE, render_context, system_prompt
from shared.text.prompt_fence import Fence
from shared.types import Match

ASKED = (
    "Context:\n{context}\n\nQuestion: {question}\n\n"
    "Instructions: Answer the question based ONLY on the context above, in short plain sentences. Keep to "
    "its words, names and numbers. End every sentence with the number of the excerpt that it is from, which "
    "stands in its first line, such as [1] or [1][3]. Put in quotation marks only what an excerpt says word "
    "for word. If the context doesn't contain enough information, say so and nothing else."
)


def request(
    question: str, matches: Sequence[Match], budget: int, model: str, max_tokens: int
) -> dict[str, Any]:
    """A chat completion to ask for, over the matches that fit so many tokens, numbered by their places."""
    fence = Fence()
    context = render_context(matches, fence, budget, numbered=True)
    return {
        "model": model,
        "messages": [
            {"role": "system", "content": system_prompt(fence)},
            {"role": "user", "content": ASKED.format(context=context, question=question)},
        ],
        "temperature": TEMPERATURE,
        "max_tokens": max_tokens,
    }
