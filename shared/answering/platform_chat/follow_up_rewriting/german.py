"""German grammar of references to an earlier question. Nouns are those with a capital letter."""

import re

from shared.answering.platform_chat.follow_up_rewriting.grammar import Grammar, anywhere, begins

_PREPOSITION = (
    r"(?:ab|an|am|auf|aus|bei|beim|bis|durch|für|gegen|hinter|im|in|ins|mit|nach|neben|ohne|pro|seit|trotz|"
    r"um|unter|vom|von|vor|wegen|während|zu|zum|zur|zwischen|über)"
)
_WH = (
    r"(?:wer|wen|wem|wessen|was|wann|wo|woher|wohin|wofür|womit|wodurch|worauf|woran|warum|wieso|weshalb|wie|"
    r"wieviel|welche[mnrs]?)"
)
_NOUN = r"(?-i:(?!Sie\b|Ihr(?:e[mnrs]?)?\b|Ihnen\b)[A-ZÄÖÜ0-9„»\"'])"
# Between an article and its noun: adjectives and numbers, also a participle with its complement.
_ADJECTIVES = (
    r"(?:(?-i:[a-zäöüß-]+(?:e|en|er|es|em)|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn) ){0,3}"
    rf"(?:{_PREPOSITION} (?:\w+ ){{1,4}}?(?-i:[a-zäöüß]+(?:nde|te|ene)[mnrs]? ))?"
)
_TIME = (
    r"(?:Jahr|Monat|Woche|Quartal|Tag|Halbjahr|Semester|Saison|Sommer|Winter|Frühjahr|Frühling|Herbst|"
    r"Wochenende|Morgen|Vormittag|Mittag|Nachmittag|Abend|Nacht|Montag|Dienstag|Mittwoch|Donnerstag|Freitag|"
    r"Samstag|Sonntag)"
)
_WEATHER = r"(?:regn|schnei|hagel|frier|gefrier|stürm|donner|blitz|tau|brenn|brann|klingel|klopf)\w*"
_INFINITIVE = r"(?:\bzu (?-i:[a-zäöüß])\w+n\b|\b(?-i:[a-zäöüß])\w{1,8}zu\w+en\b)"
# No comparatives, though they end like these.
_POSITIVE = (
    r"(?:aber|außer|bisher|bitter|daher|der|er|euer|finster|früher|heiter|hier|hinter|immer|leer|locker|"
    r"mager|munter|nachher|oder|sauber|schwer|sehr|seither|sicher|sofern|später|teuer|über|unter|vorher|wer|"
    r"wieder|woher|weiter|(?:all|dies|ein|ih|jed|jen|kein|manch|solch|uns|viel|welch)er)"
)
_COMPARATIVE = rf"(?!{_POSITIVE}\b)(?:(?-i:[a-zäöüß]{{3,}}er)|mehr|weniger)"

GERMAN = Grammar(
    continuation=begins(
        r"und|aber|oder|also|auch|dann|nur|sogar|nicht|was ist mit|wie ist es (?:mit|bei|in|im)|"
        r"wie sieht es|wie steht es|wie verhält es|"
        r"warum nicht|wieso nicht|ebenso|genauso|stattdessen|mehr dazu"
    ),
    expletive=anywhere(
        r"\b(?:gibt|gab|gäbe) es\b|\bes(?: \w+){0,4} (?:gibt|gab|gäbe|geben)\b",
        rf"\bes(?: \w+){{0,5}}? {_WEATHER}|\b(?-i:[a-zäöüß])?{_WEATHER} es\b",
        # The real subject follows: "es dauert, bis", "ist es erlaubt, ... zu".
        r"\bes\b(?=[^?]*, ?(?:dass|daß|ob|bis)\b)",
        rf"\bes\b(?=[^?]*{_INFINITIVE})",
        r"\bhandelt es sich\b|\bes handelt sich\b|\bes sich um\b|\bgeht es (?:um|mit|nach|bei)\b",
        r"\bkommt es (?:auf|zu|darauf)\b|\bes heißt\b|\bbedarf es\b|\bes bedarf\b|\bspät ist es\b",
        rf"\bdies(?:e[mnrs]?)? (?:\w+ )?{_TIME}\w*",
        # Relative pronouns.
        rf"[,;] ?(?:{_PREPOSITION} )?(?:der|die|das|den|dem|deren|dessen|denen)\b",
        # It refers to the clause that follows: "dafür zuständig, dass".
        r"\bda(?:r|ran|rauf|raus|rin|rüber|rum|runter|für|gegen|mit|nach|von|vor|zu)\b"
        r"(?=[^?]*, ?(?:dass|daß|ob|wie|wer|was|wann|wo)\b)",
        r", ?damit\b|\bdiejenigen\b",
        rf"\b(?:{_PREPOSITION} )?welche[mnrs]? (?:{_TIME}|Uhrzeit|Zeitpunkt|Datum|Art|Weise|Grund)\w*",
        r"\bwie viele? (?:Minuten|Stunden|Tage|Wochen|Monate|Jahre|Mal)\b|\b(?:zum )?letzten Mal\b",
    ),
    pronoun=anywhere(
        r"(?-i:\b(?:er|es|sie|ihn|ihm|ihnen)\b|^Er\b|^Es\b)",
        rf"\b(?-i:ihr)\b(?! {_ADJECTIVES}{_NOUN})",
        # An article without a noun is a demonstrative.
        rf"\b(?:der|die|das|den|dem)\b(?! {_ADJECTIVES}{_NOUN})|\bdenen\b",
        r"\b(?:dies|diese[mnrs]?|jene[mnrs]?|solche[mnrs]?)\b",
        r"\b(?:da(?:bei|durch|für|gegen|hinter|mit|nach|neben|von|vor|zu|zwischen|her)|"
        r"dar(?:an|auf|aus|in|über|um|unter)|dort|dorthin|dorther)\b",
    ),
    incomplete=anywhere(
        rf"\b(?-i:ihr|sein)(?:e[mnrs]?)?\b(?= {_ADJECTIVES}{_NOUN})",
        r"\b(?:der|die|das|dem|den)selben?\b|\b(?:der|die|das|dem|den) gleichen?\b(?![^?]*\bwie\b)",
        r"\b(?:einen?|einer|eine?s|keinen?|keiner|keine?s|welchen?|welches)\W*$",
        r"\b(?-i:andere[mnrs]?)\b(?! \w*(?: |$)?(?-i:[A-ZÄÖÜ]))",
    ),
    elliptical=anywhere(
        r"\b(?:wer|was|wo|wann|wie|jemand|etwas|niemand|nichts) (?:sonst|noch)\b(?= \w+\W*$|\W*$)",
        r"\b(?:ebenso|genauso|stattdessen)\W*$",
        rf"^\W*(?!{_WH}\b|{_PREPOSITION}\b)\w+ (?![^?]*\b(?:nicht nur|sowohl)\b)[^?]*\b(?:auch|ebenfalls)\b",
        rf"^\W*(?!{_WH}\b)\w+ (?![^?]*\b(?:als|oder)\b)[^?]*\b{_COMPARATIVE}(?=\W*$| {_PREPOSITION}\b)",
        rf"\bwie viel {_COMPARATIVE}\b(?![^?]*\bals\b)",
    ),
    choice=begins(r"welche[mnrs]?(?= (?-i:[a-zäöü]))(?! (?-i:[a-zäöüß-]+(?:en|e|es|er)) (?-i:[A-ZÄÖÜ]))"),
    noun=anywhere(rf"(?<=[\w,;:»“] ){_NOUN}\w*"),
    question_noun=anywhere(rf"\b(?:welche[mnrs]?|wie viele?) {_ADJECTIVES}{_NOUN}\w*"),
    boundary=anywhere(
        r"[,;:]| (?:und|oder|aber|sondern|wenn|falls|bevor|nachdem|weil|während|sobald|solange|bis) "
    ),
    subordinator=begins(
        r"bevor|ehe|wenn|falls|nachdem|während|sobald|solange|weil|obwohl|seit|seitdem|bis|da"
    ),
    preposition=begins(_PREPOSITION),
    interrogative=re.compile(
        rf"\b(?:{_WH}|ist|sind|war|waren|hat|haben|kann|können|muss|müssen|darf|dürfen|soll|sollen|wird|werden|"
        r"gilt|gelten|gibt)\b",
        re.IGNORECASE,
    ),
)
