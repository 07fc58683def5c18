"""Spanish grammar of references to an earlier question."""

import re

from shared.answering.platform_chat.follow_up_rewriting.grammar import Grammar, anywhere, begins

_WH = r"(?:quién(?:es)?|qué|cuándo|dónde|adónde|cómo|cuál(?:es)?|cuánt[oa]s?|por qué)"
_PREPOSITION = (
    r"(?:a|al|ante|bajo|con|contra|de|del|desde|durante|en|entre|hacia|hasta|para|por|según|sin|sobre|tras)"
)
_DETERMINER = (
    r"(?:el|la|los|las|un|una|unos|unas|mi|mis|nuestr[oa]s?|cada|todos|todas|al|del|algún|alguna|algunos|"
    r"algunas|ningún|ninguna|dos|tres|cuatro|cinco|diez|\d[\d.,]*)"
)
_MODAL = (
    r"(?:puede|pueden|puedo|podemos|debe|deben|debo|ha|han|he|hemos|había|hay|va|van|voy|vamos|tengo|tiene)"
)
_TIME = (
    r"(?:año|mes|semana|trimestre|semestre|día|mañana|tarde|noche|verano|invierno|primavera|otoño|temporada|"
    r"curso|ejercicio|fin de semana|lunes|martes|miércoles|jueves|viernes|sábado|domingo)"
)

SPANISH = Grammar(
    continuation=begins(
        r"y|e|pero|o|entonces|también|además|solo|sólo|solamente|incluso|tampoco|ni|igual|lo mismo|"
        r"qué hay de|qué pasa con|qué tal|por qué no"
    ),
    expletive=anywhere(
        rf"\best[aeo]s? (?:últim[oa]s? |mism[oa]s? |próxim[oa]s? )?{_TIME}s?\b",
        r"\b(?:el|la|los|las) que\b|\blo (?:que|de|más|menos|mejor|peor)\b|\besta (?=\w+[ai]d[oa]\b)",
        rf"\b(?:{_PREPOSITION} )?qué (?:{_TIME}|hora|fecha|momento|modo|manera|forma|medida)s?\b",
        r"\bcuánt[oa]s (?:minutos|horas|días|semanas|meses|años|veces)\b|\bcuánto tiempo\b",
        r"\b(?:por|la) última vez\b|\bes decir\b",
    ),
    pronoun=anywhere(
        r"\b(?:él|ella|ellos|ellas|ello)\b",
        r"\b(?:est[aeo]s?|es[aeo]s?|aquel(?:la|lo|las|los)?)\b|\b(?:allí|ahí|allá)\b",
        # Object pronouns: behind an infinitive or gerund, between a question word and its verb, in a
        # cluster, at the beginning before an auxiliary. Elsewhere these words are articles.
        r"(?<!\bla )(?<!\blas )(?<!\buna )\b(?!charlas?\b|perlas?\b)"
        r"\w{2,}(?:[aeiáéí]r|ndo)(?:me|te|se|nos)?l[aoe]s?\b",
        r"\b(?:quién(?:es)?|cómo|dónde|adónde|cuándo|por qué) (?:no |se |me |te |nos |ya )*"
        r"(?:lo|la|los|las) \w",
        r"\b(?:se|me|te|nos|os) (?:lo|la|los|las) \w",
        rf"^\W*(?:la|los|las) {_MODAL}\b|^\W*lo \w",
    ),
    incomplete=anywhere(
        r"\b(?:sus?|suy[oa]s?)\b",
        # With the person it means in the same clause: "a los conductores se les paga".
        r"\bles?\b(?![^?]*\ba(?:l| (?:l[ao]s?|un\w*|cada|quien|(?-i:[A-ZÁÉÍÓÚ]))) ?)",
        r"\b(?:el|la|los|las) de\b",
        r"\b(?:el|la|los|las) (?:más|menos) \w+\W*$",
        r"\b(?:igual|lo mismo|el mismo|la misma|los mismos|las mismas)\b(?! (?:que|a)\b)(?! \w+ que\b)",
        r"\b(?:otr[oa]s?)\b",
    ),
    elliptical=anywhere(
        r"\b(?:tampoco|en su lugar|en cambio)\W*$",
        rf"^\W*(?!(?:{_PREPOSITION} )?{_WH}\b)(?![^?]*\bno solo\b)[^?]*\btambién\b",
        r"\b(?:quién|qué|dónde|cuándo|algo|alguien|nada|nadie) más\W*$",
        r"(?<!\bel )(?<!\bla )(?<!\blo )(?<!\blos )(?<!\blas )\b(?:más|menos) (?!que\b|o\b)\w+\W*$",
        r"(?<!\bel )(?<!\bla )(?<!\blo )\b(?:mejor|peor|mayor|menor)(?:es)?\W*$",
    ),
    choice=begins(r"(?:\w+ )?cuál(?:es)?"),
    noun=anywhere(
        rf"\b{_DETERMINER} (?!de\b|que\b|más\b|menos\b)\w",
        r"(?<=[\w,;] )(?-i:[A-ZÁÉÍÓÚÑ])\w+",
        # A plural without an article.
        rf"(?<=\w )(?!(?:{_PREPOSITION}|{_WH}|l[ao]s|est[ao]s|es[ao]s|menos|antes|entonces|lejos|dos|tres)\b)"
        r"(?-i:[a-záéíóúñ])\w{2,}[aeo]s\b(?<!mos)",
    ),
    question_noun=anywhere(r"\b(?:qué|cuánt[oa]s?) (?!es\b|son\b|se\b|de\b|hay\b)\w+"),
    boundary=anywhere(r"[,;:¿]| (?:y|e|o|pero|si|cuando|porque|mientras|antes|después|hasta|aunque) "),
    subordinator=begins(r"antes de|si|cuando|mientras|después de|porque|aunque|hasta que|en cuanto|una vez"),
    preposition=begins(_PREPOSITION),
    drops_subject=True,
    interrogative=re.compile(rf"\b(?:{_WH}|es|son|está|están|hay|se|{_MODAL})\b", re.IGNORECASE),
)
