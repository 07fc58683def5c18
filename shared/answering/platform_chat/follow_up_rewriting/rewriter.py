"""Rewriting of follow-up questions by the model or by rules.

The rules serve without a model and after a failure. Only the caller's own search uses the result.
"""

from collections.abc import Sequence

from shared.answering.platform_chat.budgeted_model import BudgetedModel
from shared.answering.platform_chat.conversation_history import previous_question, trim_history
from shared.answering.platform_chat.follow_up_rewriting.detection import is_follow_up
from shared.answering.platform_chat.types import Message
from shared.text.normalize import is_one_line

# The model gets the end of the conversation.
HISTORY_TOKENS = 2_000
MAX_TOKENS = 200
MAX_CHARACTERS = 1_000
TASK = (
    "You make questions whole. You get a conversation, and last, behind FOLLOW-UP, a question in it. Do not "
    "answer it. Reply with that question alone, in its language, in one line, written so that it is "
    "understood without the conversation: names in the place of words that stand for them. Add nothing else."
)


async def rewrite_question(
    question: str,
    earlier: Sequence[Message],
    query_model: BudgetedModel | None,
    seconds: float,
    *,
    marked_follow_up: bool,
) -> tuple[str, str]:
    """The query of the search: rewritten if the question is a follow-up or the request marks it as one; and,
    if rules joined two questions, the previous one."""
    if not earlier or not (marked_follow_up or is_follow_up(question)):
        return question, ""
    recent = trim_history(earlier, HISTORY_TOKENS)
    previous = previous_question(recent)
    by_rules = f"{previous}\n{question}" if previous else question, previous
    if query_model is None:
        return by_rules
    lines = [f"{message.role.upper()}: {message.content}" for message in recent]
    material = "\n\n".join([*lines, f"FOLLOW-UP: {question}"])
    line = (await query_model.ask(TASK, material, MAX_TOKENS, seconds) or "").strip()
    return (line, "") if is_one_line(line, MAX_CHARACTERS) else by_rules
