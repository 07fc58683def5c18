"""English grammar of references to an earlier question."""

import re

from shared.answering.platform_chat.follow_up_rewriting.grammar import Grammar, anywhere, begins
from shared.text.language_detection import ENGLISH_MONTHS, WEEKDAYS

_BE = r"(?:is|are|was|were|be|been|being|isn't|aren't|wasn't|weren't)"
_AUXILIARY = (
    rf"(?:{_BE}|do|does|did|don't|doesn't|didn't|has|have|had|can|could|may|might|must|shall|should|will|"
    r"would|can't|cannot|won't)"
)
_PREPOSITION = (
    r"(?:about|after|against|at|before|between|by|during|for|from|in|into|of|on|over|per|through|to|under|"
    r"with|within|without)"
)
_WH = r"(?:who|whom|whose|what|when|where|why|how|which)"
_DETERMINER = (
    r"(?:a|an|the|our|my|your|each|every|all|any|some|no|both|several|\d[\d.,]*|two|three|four|five|ten)"
)
_PRONOUN = (
    r"(?:i|you|we|he|she|it|they|them|him|her|us|me|there|this|that|these|those|one|ones|its|their|his|such)"
)
# "to" before a verb: a determiner, a name or a plural makes it a preposition.
_INFINITIVE = rf"to (?!(?:{_DETERMINER}|{_PRONOUN}|which|what|whom)\b|(?-i:[A-Z])|\w+(?<!s)s\b)\w"
_TIME = (
    r"(?:year|month|week|quarter|semester|term|season|morning|afternoon|evening|spring|summer|autumn|fall|"
    rf"winter|weekend|century|decade|{'|'.join((*WEEKDAYS, *ENGLISH_MONTHS))})"
)
_COMPARATIVE = (
    r"(?:(?:cheap|fast|slow|bigg|larg|small|long|short|high|low|old|new|young|hard|strong|weak|saf|clean|wid|"
    r"deep|warm|cold|hott|clos|near|strict|rich|poor|loud|quiet|thick|thinn|great|quick|simpl|bright|dark|"
    r"rough|smooth|tough|light|wett|dri|busi|easi|heavi|earli)er|better|worse|further|farther|fewer)"
)

ENGLISH = Grammar(
    continuation=begins(
        r"and|but|so|then|also|or|plus|what about|how about|how come|how so|why not|why so|really|ok(?:ay)?|"
        r"tell me more|more(?! than)|same(?!-)|likewise|instead|only|even|not"
    ),
    expletive=anywhere(
        # Weather.
        r"\bit(?:'s)?(?: \w+){0,2}? (?:snow|rain|hail|freez|thunder|drizzl)(?:s|es|ed|e|ing)?\b",
        # The real subject follows: "it takes ... to", "is it allowed to", "it is true that".
        r"\bit (?:\w+ly )?(?:takes?|took|taken|costs?|needs?|means?|requires?|makes? sense|helps?|matters?|"
        r"pays?)\b"
        rf"(?=[^?]*\b(?:{_INFINITIVE}|until\b|before\b|that\b|whether\b))",
        rf"\b(?:{_BE} it|it(?:'s| {_BE}| will be| would be| seems| becomes))(?: (?!to\b)\w+){{1,4}}? "
        rf"(?:{_INFINITIVE}|that (?!\W*$)|whether\b|for (?:\w+ ){{1,4}}{_INFINITIVE})",
        r"\bit (?:seems|appears|happens|turns out)\b",
        r"\b(?:makes?|made|finds?|found) it \w+(?= to\b)",
        r"\bwhen it comes to\b|\bhow (?:far|late|long) is it (?:to|from|until|since)\b|\bworth it\b",
        rf"\b{_AUXILIARY}(?: not| be)? there\b(?!\W*$)|\bthere(?:'s| {_AUXILIARY})\b",
        rf"\bth(?:is|ese) (?:\w+ )?(?:{_TIME}s?|days)(?:'s|s')?\b",
        r"\bthose (?:who|whom|whose|which|that)\b",
        r"\b(?:each other|one another)\b",
        r"\bhow many (?:minutes|hours|days|weeks|months|years|times)\b|\b(?:the )?last time\b",
        r"\b(?:what|which) (?:time|times|day|days|date|year|month|week|kind|sort|type|way|extent|reason)\b",
    ),
    pronoun=anywhere(
        r"\b(?-i:[Ii]t(?:'s)?)\b|\b(?:they|them|theirs|he|him|she|hers|this|these|those|there)\b",
        r"\bsuch\b(?! as\b)",
        # "that" as a pronoun or with its noun; not where it begins a clause.
        rf"(?:^|\b(?:{_AUXILIARY}|{_PREPOSITION}|{_WH}|and|or|like|than|as) )"
        rf"that\b(?! (?:{_DETERMINER}|i|you|we|they|he|she|it)\b)",
        r"\bthat(?=\W*$|\s*[,;:.!])",
        rf"\b(?!{_DETERMINER}\b|which\b|what\b|whose\b)\w+ \w+ that \w+(?=\W*$| {_PREPOSITION}\b)",
    ),
    incomplete=anywhere(
        r"\b(?:their|its|his|her)\b",
        r"\b(?:which|the|this|that|another|first|second|third|last|next|other|\w+er|\w+est|\w+ (?:new|old)) "
        rf"ones?\b(?!-)(?=\W*$| (?:{_AUXILIARY}|{_PREPOSITION}|that|which|who|we|you|i)\b)",
        r"\bones\b|\bone\W*$",
        r"\b(?:the )?same\b(?!-)(?![^?]*\bas\b)",
        r"\b(?:another|others)\b",
        r"\bthe (?:latter|former)\b(?! \w+s\b)",
    ),
    elliptical=anywhere(
        rf"\b(?:{_WH}|(?:any|some|no|every)(?:one|body|thing|where)) else\b(?! than)",
        r"\b(?:too|as well|instead|likewise)\W*$|\binstead\b(?! of)",
        rf"^\W*{_AUXILIARY}\b(?![^?]*\b(?:than|or|compared)\b)[^?]*\b{_COMPARATIVE}"
        rf"(?=\W*$| {_PREPOSITION}\b)",
        rf"^\W*{_BE}\b(?![^?]*\b(?:than|or|compared)\b)[^?]*\b(?:more|less) \w+\W*$",
        rf"^\W*{_AUXILIARY}\b(?![^?]*\bnot only\b)[^?]*\b(?:also\b|(?:more|less)\W*$)",
        rf"\bhow much (?:{_COMPARATIVE}|more|less)\b(?![^?]*\bthan\b)",
        r"\b(?:do|does|did|is that|think|say) so\b",
        r"\b(?:aforementioned|above-mentioned|(?:mentioned|as) above)\b",
    ),
    choice=begins(rf"which (?:one(?!-)|{_AUXILIARY})"),
    noun=anywhere(
        rf"\b{_DETERMINER} (?!{_PRONOUN}\b|of\b)\w",
        r"(?<=[\w,;] )(?-i:(?!I\b)[A-Z])\w+",
        rf"\b(?!to\b){_PREPOSITION} (?!{_PRONOUN}\b|{_DETERMINER}\b|{_WH}\b|{_AUXILIARY}\b|how\b|\w+ing\b)"
        r"[a-z]\w{2,}",
        rf"\b{_AUXILIARY} (?!{_PRONOUN}\b|{_DETERMINER}\b|{_AUXILIARY}\b|{_PREPOSITION}\b|not\b|"
        r"\w+(?:ed|ing|en)\b)[a-z]\w{3,}(?= \w)",
    ),
    question_noun=anywhere(
        r"\b(?:which|what|whose|how many|how much) (?!of\b)(?!\w+ (?:it|they)\b)[a-z]\w{2,}"
    ),
    boundary=anywhere(
        r"[,;:]| (?:and|or|but|if|when|before|after|because|while|until|once|unless|although|since|where|so) "
    ),
    subordinator=begins(
        r"before|after|if|when|while|once|because|although|since|until|unless|as soon as|in case"
    ),
    preposition=begins(_PREPOSITION),
    interrogative=re.compile(rf"\b(?:{_WH}|{_AUXILIARY})\b", re.IGNORECASE),
)
