"""What of a conversation's past counts for the next turn: which messages a model is shown, and what a
question means that leans on them. Pure; without a model, by rules.
"""

import re
from collections.abc import Sequence

from shared.chat.asked import FRAME_TOKENS
from shared.conversations.nouns import Message
from shared.tokens import count_tokens
from shared.words import content_words

# Words that stand for something that was said before, and beginnings that go on from there: English, German,
# French, Spanish.
_STANDING = (
    r"(?-i:[Ii]t(?:'s|s)?)|they|them|their|theirs|this|these|those|he|him|his|she|her|hers|ones|"
    r"(?:which|second|first) one(?!-)|the same(?!-)|former|latter|above|previous|earlier|instead|else|"
    r"another|others|tell me more|(?:about|with|for|of|to|from|by|after|before|is|was|does|did|do|like) that|"
    r"er|sie|es|ihn|ihm|ihr|ihre|ihren|dieser|diese|dieses|diesem|diesen|davon|dazu|damit|dort|dabei|"
    r"il|elle|ils|elles|lui|leur|leurs|cela|ça|celui|celle|ceux|celles|"
    r"él|ella|ellos|ellas|esto|eso|ese|esa|esos|esas|aquel|aquella"
)
_BEGINNINGS = (
    r"and|but|so|then|also|or|what about|how about|why|how so|how come|really|ok(?:ay)?|"
    r"und|aber|was ist mit|wie sieht es|warum|wieso|et|mais|pourquoi|qu'en est-il|y|pero|qué hay|por qué"
)
# At the end of a question these stand for something too; within one they mostly join or only begin it.
_LEANS = re.compile(
    rf"\b(?:{_STANDING})\b|\b(?:that|there|one|more)\W*$|^\W*(?:{_BEGINNINGS})\b", re.IGNORECASE
)
# A question of fewer words that mean something is hardly whole.
_WHOLE = 2
# Where words are written without blanks: so many characters are a question of their own.
_UNSPACED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]")
_WHOLE_UNSPACED = 6
# Who leans does so at once.
_LOOKED_AT = 1_000


def remembered(messages: Sequence[Message], budget: int) -> tuple[Message, ...]:
    """The latest of them that cost so many tokens at most, in order, from a question on."""
    kept: list[Message] = []
    for message in reversed(messages):
        budget -= FRAME_TOKENS + count_tokens(message.content)
        if budget < 0:
            break
        kept.append(message)
    while kept and kept[-1].role != "user":
        kept.pop()
    return tuple(reversed(kept))


def leans(question: str) -> bool:
    """Whether it can hardly be understood without what was said before."""
    beginning = question.strip()[:_LOOKED_AT]
    if _LEANS.search(beginning):
        return True
    few = len(content_words(beginning)) < _WHOLE
    return few and (len(beginning) < _WHOLE_UNSPACED or not _UNSPACED.search(beginning))


def joined(question: str, messages: Sequence[Message]) -> str:
    """The question behind the last one that stood on its own: what both say is looked for together."""
    for message in reversed(messages):
        if message.role == "user" and not leans(message.content):
            return f"{message.content.strip()}\n{question}"
    return question
