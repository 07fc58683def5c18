"""Filler phrases around a question: greetings, thanks, "can you please tell me"."""

import re

from shared.retrieval.query import MAX_LENGTH

# Longest thanks at the end, in characters.
_TAIL = 60
_PLEASE = r"(?:please|pls|kindly)\s+"
_ME = r"(?:\s+(?:me|us))"
_YOU = rf"(?:can|could|would|will)\s+(?:you|someone|anyone|somebody)\s+(?:{_PLEASE})?"
_ENGLISH = (
    r"(?:hi|hello|hey)(?:\s+(?:there|all|everyone|team))?\s*[,!.](?!\s*world)",
    r"(?:thanks|thank\s+you)\s*[,!.]",
    r"please|pls|kindly",
    rf"{_YOU}(?:tell|show|give|find|help|get){_ME}(?:\s+(?:about|find|understand|out))?",
    rf"{_YOU}(?:explain|describe)(?:\s+to{_ME})?",
    rf"(?:tell|show|give|find|get){_ME}(?:\s+(?:about|everything\s+(?:about|on)|information\s+(?:about|on)))?",
    r"(?:do\s+you|does\s+(?:anyone|anybody|somebody|someone))\s+(?:happen\s+to\s+)?know",
    r"(?:i(?:\s+a|['’])m|we(?:\s+are|['’]re))\s+(?:looking\s+for|trying\s+to\s+find|searching\s+for)",
    r"i(?:\s+woul|['’])d\s+like\s+to\s+(?:know|see|find)(?:\s+out)?(?:\s+about)?",
    r"(?:i|we)\s+(?:want|need)\s+to\s+(?:know|find|see)(?:\s+out)?(?:\s+about)?",
    r"(?:i|we)\s+need\s+(?:information|info|details)\s+(?:on|about)",
    r"i\s+was\s+wondering(?:\s+(?:if|whether))?|i\s+wonder|let\s+me\s+know",
    r"what\s+can\s+you\s+tell\s+me\s+about",
    r"is\s+there\s+any(?:\s+(?:documentation|information|info|docs))\s+(?:on|about|for)",
)
_OTHERS = (
    r"(?:kannst\s+du|könn(?:test\s+du|en\s+sie)|könnten\s+sie)\s+(?:mir\s+)?(?:bitte\s+)?(?:sagen|zeigen)",
    r"(?:zeig(?:e|en\s+sie)?|sag(?:e|en\s+sie)?)\s+mir(?:\s+bitte)?|ich\s+suche(?:\s+nach)?|bitte",
    r"(?:peux[\s-]tu|pouvez[\s-]vous)\s+(?:me\s+|m['’])(?:dire|montrer|expliquer)",
    r"montrez?[\s-]moi|je\s+cherche",
    r"(?:puedes|podrías|puede)\s+(?:decirme|mostrarme|explicarme)",
    r"mu[eé]strame|estoy\s+buscando|por\s+favor",
)
_FILLER = re.compile(rf"(?:{'|'.join((*_ENGLISH, *_OTHERS))})(?![\w'’-])[\s,:;]*", re.IGNORECASE)
# "a note of thanks": without a separator, thanks belong to the question.
_THANKS = re.compile(
    r"(?:[\s,;.!]+(?:please|pls|bitte|por\s+favor)|(?:(?<=\?)|\s*[,;.!]+|\s+[–—-]+)\s+(?:thanks(?:\s+(?:a\s+lot|in\s+advance))?"
    r"|thank\s+you(?:\s+(?:very\s+much|in\s+advance))?|danke|merci|gracias))[\s.!?]*$",
    re.IGNORECASE,
)
_HAS_WORD = re.compile(r"\w")


def strip_filler(question: str) -> str:
    """The question on one line without filler phrases; unchanged if nothing else remains."""
    line = " ".join(question.split())[:MAX_LENGTH].rstrip()
    text = line
    while True:
        filler = _FILLER.match(text)
        shorter = text[filler.end() :] if filler else text
        shorter = shorter[:-_TAIL] + _THANKS.sub("", shorter[-_TAIL:])
        if shorter == text:
            return text
        if not _HAS_WORD.search(shorter):
            return line
        text = shorter
