"""A follow-up question, made complete: by the model, or by rules where there is none or it fails.

The search for the result is under the caller's own rights, and only the caller sees it.
"""

from collections.abc import Sequence

from shared.answering.platform_chat.budgeted_model import BudgetedModel
from shared.answering.platform_chat.follow_ups.detection import is_follow_up
from shared.answering.platform_chat.history import join_with_previous, trim_history
from shared.answering.platform_chat.types import Message
from shared.text.normalize import has_invisible

# The model gets the end of the conversation: a question depends on one shortly before it.
HISTORY_TOKENS = 2_000
MAX_TOKENS = 200
MAX_CHARACTERS = 1_000
TASK = (
    "You make questions whole. You get a conversation, and last, behind FOLLOW-UP, a question in it. Do not "
    "answer it. Reply with that question alone, in its language, in one line, written so that it is "
    "understood without the conversation: names in the place of words that stand for them. Add nothing else."
)


async def rewritten(
    question: str,
    earlier: Sequence[Message],
    thinking: BudgetedModel | None,
    seconds: float,
    *,
    marked_follow_up: bool,
) -> str:
    """The question as the search gets it: unchanged, unless it depends on an earlier one, or the request
    marks it as a follow-up."""
    if not earlier or not (marked_follow_up or is_follow_up(question)):
        return question
    near = trim_history(earlier, HISTORY_TOKENS)
    by_rules = join_with_previous(question, near)
    if thinking is None:
        return by_rules
    said = [f"{message.role.upper()}: {message.content}" for message in near]
    material = "\n\n".join([*said, f"FOLLOW-UP: {question}"])
    line = (await thinking.ask(TASK, material, MAX_TOKENS, seconds) or "").strip()
    return line if _is_question(line) else by_rules


def _is_question(line: str) -> bool:
    return (
        0 < len(line) <= MAX_CHARACTERS
        and len(line.splitlines()) == 1
        and "<<" not in line
        and not has_invisible(line)
    )
