"""Model request for an answer whose sentences cite numbered excerpts."""

from collections.abc import Sequence

from shared.generation import prompt
from shared.models.chat_stream import Body
from shared.types import Match, Sampling

QUESTION = (
    "Context:\n{context}\n\nQuestion: {question}\n\n"
    "Instructions: Answer the question based ONLY on the context above, in short plain sentences. Keep to "
    "its words, names and numbers. End every sentence with the number of the excerpt that it is from, which "
    "stands in its first line, such as [1] or [1][3]. Put in quotation marks only what an excerpt says word "
    "for word. If the context doesn't contain enough information, say so and nothing else."
)


def chat_request(question: str, matches: Sequence[Match], budget: int, model: str, max_tokens: int) -> Body:
    """The body of a chat completion over the matches that fit the budget of tokens, numbered by place."""
    sampling = Sampling(max_tokens=max_tokens)
    return prompt.chat_request(question, matches, model, budget, sampling, template=QUESTION, numbered=True)
