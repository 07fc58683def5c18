"""Prompt of an answer from excerpts: task, templates, context, and the reply of a model without an answer.

Chunk text is data, inside a fence (prompt_fence.py), and the model gets no tools.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from shared.models.chat_stream import Body
from shared.models.model_capabilities import Author
from shared.text.citation_marks import excerpt
from shared.text.prompt_fence import Fence
from shared.text.token_count import count_tokens, fit_token_budget
from shared.types import Match, Sampling

# The default, for answers close to the context.
TEMPERATURE = 0.2
DEFAULT_SAMPLING = Sampling()

TASK = "You answer questions from excerpts of the user's documents, each with its title first."
# The whole reply of a model that finds no answer.
ABSTENTION = "NO_ANSWER"
ABSTAIN = f" If neither they nor the conversation contain the answer, reply with exactly {ABSTENTION}."
QUESTION = (
    "Context:\n{context}\n\nQuestion: {question}\n\n"
    "Instructions: Answer the question based ONLY on the context above. If the context doesn't contain "
    "enough information, say so. Keep the answer concise (100-500 words). Cite sources by mentioning their "
    "titles."
)
# For an answer whose sentences cite numbered excerpts.
CITED_QUESTION = (
    "Context:\n{context}\n\nQuestion: {question}\n\n"
    "Instructions: Answer the question based ONLY on the context above, in short plain sentences. Keep to "
    "its words, names and numbers. End every sentence with the number of the excerpt that it is from, which "
    "stands in its first line, such as [1] or [1][3]. Put in quotation marks only what an excerpt says word "
    "for word. If the context doesn't contain enough information, say so and nothing else."
)
# For the last turn of a conversation, whose earlier turns may set length and form.
TURN = (
    "Context:\n{context}\n\nQuestion: {question}\n\n"
    "Instructions: Answer the question based ONLY on the context above and on this conversation. If they "
    "don't contain enough information, say so. Cite sources by mentioning their titles."
)
NOTHING_FOUND = "(No document has anything on this.)"


def may_be_abstention(text: str) -> bool:
    """Whether the reply so far may become an abstention."""
    return ABSTENTION.startswith(_without_marks(text))


def is_abstention(text: str) -> bool:
    return _without_marks(text) == ABSTENTION


def _without_marks(text: str) -> str:
    return text.strip().strip(".`'\"*").strip()


def chat_request(
    question: str,
    matches: Sequence[Match],
    model: str,
    context_tokens: int,
    sampling: Sampling,
    *,
    template: str = QUESTION,
    numbered: bool = False,
) -> Body:
    """The body of a completion that answers one question from the matches that fit the context. `template`
    has the fields context and question; `numbered` as for `render_context`."""
    fence = Fence()
    context = render_context(matches, fence, context_tokens, numbered=numbered)
    return {
        "model": model,
        "messages": [
            {"role": "system", "content": system_prompt(fence, may_abstain=True)},
            {"role": "user", "content": template.format(context=context, question=question)},
        ],
        **{"temperature": TEMPERATURE, **sampling.specified()},
    }


def author_of(request: Body) -> Author:
    """The author of a request: its sampling parameters are the default, or also a caller's."""
    sampling = {field.name: request[field.name] for field in fields(Sampling) if field.name in request}
    is_default = sampling.items() <= {"temperature": TEMPERATURE}.items()
    return Author.PRODUCT if is_default else Author.PRODUCT_AND_CALLER


def system_prompt(fence: Fence, *, may_abstain: bool = False) -> str:
    """The task of a model that answers over `render_context`; whether it may reply ABSTENTION."""
    return fence.system_prompt(TASK + ABSTAIN if may_abstain else TASK, "source")


def render_context(matches: Sequence[Match], fence: Fence, budget: int, *, numbered: bool = False) -> str:
    """The matches that fit the budget of tokens, best first, each inside the fence; `numbered` by their
    positions among all of them."""
    numbers = {match.chunk_id: number for number, match in enumerate(matches, start=1)} if numbered else {}

    def shown(match: Match) -> str:
        return _excerpt(match, fence, numbers.get(match.chunk_id))

    def cost(match: Match) -> int:
        return count_tokens(shown(match))

    chosen = fit_token_budget(matches, budget, cost)
    if matches and not chosen:
        # Not even the best fits: its beginning is cut to fit.
        cut = matches[0]
        while cut.text and (price := cost(cut)) > budget:
            cut = replace(cut, text=cut.text[: len(cut.text) * budget // price - 1])
        chosen = (cut,)
    return "".join(map(shown, chosen)).rstrip("\n")


def without_texts(messages: Sequence[Mapping[str, Any]], matches: Sequence[Match]) -> list[dict[str, str]]:
    """The messages of a request, for a record: with a mark in the place of each text of a document and of
    each message but the first and the last, which may repeat such texts. A passage's mark has its number
    among the matches, from 1."""
    fence = Fence.of(messages[0]["content"]) if messages else None
    if fence is None:
        return []
    positions = {
        _excerpt(match, fence, number).rstrip("\n"): position
        for position, match in enumerate(matches, start=1)
        for number in (None, position)
    }

    def mark_of(fenced: str) -> str:
        position = positions.get(fenced)
        return f"[passage {position}]" if position else f"[{len(fenced)} characters of documents]"

    outline = [
        {"role": message["role"], "content": f"[{len(str(message.get('content') or ''))} characters]"}
        for message in messages
    ]
    outline[0]["content"] = messages[0]["content"]
    outline[-1]["content"] = fence.substitute(messages[-1]["content"], mark_of)
    return outline


def _excerpt(match: Match, fence: Fence, number: int | None) -> str:
    text = f"{match.header}\n{match.text}" if match.header else match.text
    return excerpt(match.title, text, fence, number)
