"""Sentences of an answer about itself: lead-ins, labels, that nothing was found."""

import re

from shared.generation.grounding.terms import content_stems, words_in
from shared.text.word_lists import word_sets

_LABEL = re.compile(r"#{1,6}\s|\*\*[^*]+\*\*:?$|__[^_]+__:?$")
_EMPHASIS = re.compile(r"\*+|~~|(?<!\w)_+(?=\S)|(?<=\S)_+(?!\w)")
_MAX_HEADING_WORDS = 8
_SENTENCE_END = re.compile(r"[.!?…。！？]\W*$")
_QUESTION = re.compile(r"[?？؟]\W*$")
_ANSWERED = re.compile(r"\W*(?:yes|no|ja|nein|oui|non|sí)\W*", re.IGNORECASE)
_WORDS = word_sets(__file__)
# A sentence of these words alone is a lead-in; with those of an offer, the end of an answer.
ABOUT_ANSWERS, _OFFERS = (content_stems(_WORDS[name]) for name in ("about_answers", "offers"))
_SOURCES = r"(?:context|documents?|sources?|excerpts?|passages?|texts?|information|materials?|conversation)"
_BESIDE = (
    r"(?:(?:provided|given|above|here|available|retrieved|found|supplied|you|i|have|in|this|the|context)\s+)"
)
_TELL = (
    r"(?:mention|say|state|contain|provid|includ|specif|tell|give|answer|cover|address|describ|explain"
    r"|discuss|have|indicat|list|show|detail|report|clarif)\w*"
)
_TOLD = r"(?:available|provided|given|includ|mention|specif|stated?|clear|enough|sufficient|contain|known)\w*"
_NOT = r"(?:\s+not|n't)"
_LEAD = re.compile(
    r"\W*(?:(?:unfortunately|however|i'?m sorry|sorry|leider|malheureusement)\b\W*(?:but\s+)?)?",
    re.IGNORECASE,
)
_NOTHING = re.compile(
    rf"(?:the|these|those|your)\s+(?:\w+\s+){{0,2}}?{_SOURCES}\s+{_BESIDE}{{0,3}}?"
    rf"(?:(?:do|does|did){_NOT}\s+{_TELL}|(?:is|are|was|were){_NOT}\s+{_TOLD})\b"
    rf"|(?:none of the|no)\s+(?:\w+\s+){{0,2}}?{_SOURCES}\s+{_BESIDE}{{0,3}}?"
    rf"(?:{_TELL}|(?:is|are|was|were)\s+{_TOLD})\b"
    rf"|(?:i|we)\s+(?:do not|don't|did not|didn't|cannot|can't|could not|couldn't|am unable|was unable"
    rf"|are unable)\s+(?:to\s+)?(?:find|found|answer|know|say|tell|determine|see"
    rf"|have (?:(?:enough|sufficient|any|the|specific|relevant)\s+)*(?:information|details?|data|answer))\b"
    rf"|there (?:is|are|was|were)(?:{_NOT})? ?(?:no |any |enough |sufficient |relevant |specific )*"
    rf"(?:information|mention|details|data|answer)\b"
    rf"|(?:die|der|das|den|in den|im)\s+(?:\w+\s+){{0,2}}?(?:dokumente?n?|quellen|kontext|auszügen?|texten?)"
    rf"\s+(?:enthalt|enthält|erwähn|nenn|sag|geb|gib|mach|beantwort|beschreib|find|steh|wird|werden|ist|sind)"
    rf"\w*\s+(?:\w+\s+){{0,4}}?(?:nicht|nichts|keine?[nrs]?)\b"
    rf"|ich (?:habe|kann|konnte|finde|weiß)\s+(?:\w+\s+){{0,4}}?(?:nicht|nichts|keine?[nrs]?)\b"
    rf"|(?:le|les|ce|ces)\s+(?:\w+\s+){{0,2}}?(?:contexte|documents?|sources?|extraits?|textes?)\s+ne\s+"
    rf"(?:mention|conti|di|précis|donn|indiqu|fourni|répond|parl)\w*"
    rf"|je (?:ne |n')\s*(?:\w+\s+){{1,3}}?pas\b"
    rf"|(?:el|los|las|la)\s+(?:contexto|documentos?|fuentes?|textos?)\s+no\s+"
    rf"(?:mencion|conti|dic|indic|especific|proporcion|incluy|da|tien)\w*",
    re.IGNORECASE,
)
_SAYS_NO = re.compile(r"\b(?:no|not|none|n't|any|enough)\b|n't", re.IGNORECASE)
# Another clause may follow these.
_TURN = re.compile(
    r"\b(?:and|but|as|while|yet|instead|so|because|just|however|although|though|therefore|since|which|thus"
    r"|hence|still|rather|except|unless|whereas|even|also|only|und|aber|jedoch|daher|deshalb|sondern|weil|denn"
    r"|obwohl|et|mais|donc|car|y|pero|porque|sino)\b|[,;:–—()\[\]\n]|\s-+\s",
    re.IGNORECASE,
)
_THAT = re.compile(r"\b(?:that|dass|que)\b", re.IGNORECASE)


def without_emphasis(text: str) -> str:
    """The text without Markdown's marks of emphasis."""
    return _EMPHASIS.sub("", text)


def is_lead_in(text: str) -> bool:
    """Whether the text is yes or no, or only introduces or ends an answer."""
    if _ANSWERED.fullmatch(text):
        return True
    words = content_stems(words_in(text))
    offers = ABOUT_ANSWERS | _OFFERS if _QUESTION.search(text) else ABOUT_ANSWERS
    return bool(words) and words <= offers


def missing_subject(text: str) -> str | None:
    """The subject that a sentence states to be missing; None for another kind of sentence."""
    plain = text.replace("’", "'")
    lead = _LEAD.match(plain)
    match = _NOTHING.match(plain, lead.end() if lead else 0)
    if match is None or _TURN.search(plain, match.start()):
        return None
    if match.group().casefold().startswith("there") and not _SAYS_NO.search(match.group()):
        return None
    told_by_me = re.match(r"(?:i|we|there|ich|je)\b", match.group(), re.IGNORECASE)
    if told_by_me and _THAT.search(plain, match.end()):
        return None
    return plain[match.end() :]


def is_label(text: str, *, heading: bool) -> bool:
    """Whether the text has the form of a label: a heading, or a few words in bold type."""
    if not heading and not _LABEL.match(text):
        return False
    plain = without_emphasis(text)
    return len(content_stems(words_in(plain))) <= _MAX_HEADING_WORDS and not _SENTENCE_END.search(plain)


def is_question(text: str) -> bool:
    return _QUESTION.search(text) is not None
