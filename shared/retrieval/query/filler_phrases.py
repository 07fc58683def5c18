"""Filler phrases around a question: greetings, thanks, "can you please tell me"."""

import re

from shared.retrieval.query import MAX_LENGTH

# Longest thanks at the end, in characters.
_TAIL = 60
_PHRASES = (
    r"(?:hi|hello|hey)(?:\s+(?:there|all|everyone|team))?\s*[,!.](?!\s*world)",
    r"(?:thanks|thank\s+you)\s*[,!.]",
    r"please|kindly",
    r"(?:can|could|would|will)\s+(?:you|someone|anyone)\s+(?:please\s+)?(?:tell|show|give|find|help)\s+(?:me|us)"
    r"(?:\s+(?:about|find|understand))?",
    r"(?:tell|show|give|find)\s+(?:me|us)(?:\s+about)?",
    r"(?:do\s+you|does\s+(?:anyone|someone))\s+(?:happen\s+to\s+)?know",
    r"(?:i(?:\s+a|['’])m|we(?:\s+are|['’]re))\s+(?:looking\s+for|trying\s+to\s+find)",
    r"i(?:\s+woul|['’])d\s+like\s+to\s+(?:know|see|find)(?:\s+about)?",
    r"(?:i|we)\s+(?:want|need)\s+to\s+(?:know|find|see)(?:\s+about)?",
    r"(?:kannst\s+du|können\s+sie)\s+(?:mir\s+)?(?:bitte\s+)?(?:sagen|zeigen)|bitte",
    r"(?:zeig(?:e|en\s+sie)?|sag(?:e|en\s+sie)?)\s+mir(?:\s+bitte)?",
    r"(?:peux[\s-]tu|pouvez[\s-]vous)\s+(?:me\s+|m['’])(?:dire|montrer|expliquer)|montrez?[\s-]moi",
    r"(?:puedes|puede)\s+(?:decirme|mostrarme|explicarme)|mu[eé]strame|por\s+favor",
)
_FILLER = re.compile(rf"(?:{'|'.join(_PHRASES)})(?![\w'’-])[\s,:;]*", re.IGNORECASE)
# "a note of thanks": without a separator, thanks belong to the question.
_THANKS = re.compile(
    r"(?:[\s,;.!]+(?:please|bitte|por\s+favor)|(?:(?<=\?)|\s*[,;.!]+|\s+[–—-]+)\s+(?:thanks|thank\s+you|danke|merci"
    r"|gracias)(?:\s+(?:a\s+lot|very\s+much|in\s+advance))?)[\s.!?]*$",
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
