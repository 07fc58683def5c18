"""French grammar of references to an earlier question."""

import re

from shared.answering.platform_chat.follow_up_rewriting.grammar import Grammar, anywhere, begins

_SUBJECT = r"(?:je|tu|il|elle|on|nous|vous|ils|elles)"
_WH = (
    r"(?:qui|que|quoi|quand|où|comment|pourquoi|combien|quels?|quelles?|lequel|laquelle|lesquels|lesquelles|"
    r"qu'est-ce|est-ce)"
)
_PREPOSITION = (
    r"(?:à|au|aux|après|avant|avec|chez|contre|dans|de|des|du|depuis|dès|en|entre|jusque?|par|pendant|pour|"
    r"sans|selon|sous|sur|vers)"
)
_DETERMINER = (
    r"(?:(?:l[ae]s?(?= (?!plus\b|moins\b))|un|une|des|du|au|aux|mon|ma|mes|notre|nos|votre|vos|chaque|"
    r"plusieurs|certains|certaines|tout|tous|toute|toutes|deux|trois|quatre|cinq|dix|\d[\d.,]*) |"
    r"(?:de la|de|en|sans|avec) (?=l')|l'|d')"
)
_INFINITIVE = r"\w+(?:er|ir|re)\b"
_MODAL = (
    r"(?:peut|peuvent|peux|puis|pouvons|pouvez|doit|dois|doivent|devons|devez|faut|va|vont|vais|allez|veut|"
    r"veulent|sait|pourra|pourrait|pourrais|devra|devrait|faudra|faudrait)"
)
_TIME = (
    r"(?:année|an|mois|semaine|trimestre|semestre|jour|matin|midi|après-midi|soir|nuit|été|hiver|automne|"
    r"printemps|saison|week-end|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche)"
)
_TO_DO = rf"(?:de (?:ne pas )?(?:s'|l'|le |la |les |se )?{_INFINITIVE}|d'{_INFINITIVE}|que\b|qu')"

FRENCH = Grammar(
    continuation=begins(
        r"et|mais|puis|alors|aussi|donc|sinon|seulement|idem|pareil|également|encore|qu'en est-il|quid|"
        r"pourquoi pas|comment ça"
    ),
    expletive=anywhere(
        r"\by (?:a|avait|aura|aurait)(?:-t)?-il\b|\bil (?:n')?y (?:a|ait|avait|aura|aurait|en a)\b",
        r"\b(?:faut|fallait|faudra|faudrait)-il\b|\bil (?:ne |me |te |nous |vous |lui |leur )?"
        r"(?:faut|fallait|faudra|faudrait|faille)\b",
        r"\bil (?:ne )?(?:neige|pleut|gèle|grêle|vente|tonne|fait)\b|\b(?:neige|pleut|gèle|fait)(?:-t)?-il\b",
        r"\b(?:s'agit|suffit|existe-t|reste-t|arrive-t|semble-t|vaut|convient|importe-t|se peut|se passe-t|"
        r"manque-t)-il\b",
        r"\bil (?:s'agit|suffit|existe|reste|arrive|semble|vaut mieux|convient|importe|manque)\b",
        # The real subject follows: "est-il permis de", "il est vrai que".
        rf"\b(?:est-(?:il|ce)|il (?:est|sera|serait))(?: \w+){{1,3}}? {_TO_DO}",
        r"\b(?:qu'|qu')?est-ce qu(?:e\b|i\b|')|\bquelle heure est-il\b|\bc'est\b",
        rf"\b(?:ce|cet|cette|ces) {_TIME}s?(?:-ci)?\b",
        r"\b(?:ceux|celles?|celui|ce) (?:qui\b|que\b|dont\b|qu')",
        rf"\b(?:{_PREPOSITION} )?quel(?:le)?s? (?:{_TIME}|heure|date|moment|façon|manière|mesure)s?\b",
        r"\bcombien de (?:temps|minutes|heures|jours|semaines|mois|années|fois)\b",
        r"\b(?:pour )?la dernière fois\b",
    ),
    pronoun=anywhere(
        r"(?<![-\w])(?:il|elle|ils|elles|eux|lui)\b(?!-même)",
        # Object pronouns: before an infinitive, after "qui" as a subject or another pronoun, before an
        # inverted verb. Elsewhere these words are articles.
        rf"\b{_MODAL}-(?:t-)?{_SUBJECT} (?:ne |me |te |se |nous |vous )?(?:l'|(?:le|la|les|lui|leur|en|y) )"
        rf"(?:l'|(?:le|la|les|lui|leur|en|y) )?{_INFINITIVE}",
        r"(?<!à )(?<!de )(?<!avec )(?<!chez )(?<!par )(?<!pour )\bqui (?![^?]*-(?:t-)?(?:ils?|elles?)\b)"
        r"(?:ne |n'|me |se |nous |vous )?"
        r"(?:l'|(?:le|la|les|lui|leur|en|y) )\w",
        r"(?<![-\w])(?:je|tu|on|il|elle|ils|elles) (?:ne |n'|me |te |se |nous |vous )?"
        r"(?:l'|(?:le|la|les|lui|leur) )\w",
        rf"(?:^\W*|\b{_WH} )(?:ne |n'|me |te |se |nous |vous )?(?:l'|(?:le|la|les|lui|leur|en|y) )"
        rf"\w+-(?:t-)?{_SUBJECT}\b",
        rf"\b(?:comment|où|quand|qui|pourquoi) (?:l'|(?:le|la|les|leur|lui|en|y) ){_INFINITIVE}\W*$",
        r"\b(?:combien|qui|quand|comment|pourquoi|on) en (?-i:[a-zà-ÿ])",
        r"\b(?:cela|ça|ceci|est-ce|là-bas|celui-ci|celle-ci|ceux-ci|celles-ci)\b|\blà\W*$",
        r"\b(?:ce|cet|cette|ces) \w",
    ),
    inverted=anywhere(r"-(?:t-)?(?:il|elle|ils|elles)\b"),
    incomplete=anywhere(
        r"\b(?:son|sa|ses|leurs?)\b",
        r"\b(?:celui|celle|ceux|celles)\b",
        r"\b(?:le|la|les) (?:même|mêmes)\b(?![^?]*\bqu[e'])|\bpareil(?:le)?s?\b(?! (?:à|que)\b)",
        r"\b(?:un autre|une autre|d'autres|l'autre|les autres)\b",
    ),
    elliptical=anywhere(
        r"\b(?:non plus|à la place|de plus)\W*$",
        rf"^\W*(?!(?:{_PREPOSITION} )?{_WH}\b)(?![^?]*\b(?:qu[e']|non seulement))[^?]*"
        r"\b(?:aussi|également)\b",
        r"\b(?:qui|quoi|où|rien|quelqu'un|quelque chose) d'autre\b",
        r"^(?![^?]*\b(?:ou|ne|n'\w+)\b)[^?]*"
        r"(?<!\ble )(?<!\bla )(?<!\bles )(?<!\bau )\b(?:plus|moins) \w+\W*$",
    ),
    choice=begins(r"(?:\w+ )?(?:lequel|laquelle|lesquels|lesquelles)"),
    noun=anywhere(
        rf"(?<![\w']){_DETERMINER}\w",
        r"(?<=[\w,;] )(?-i:[A-ZÀÉÈ])\w+|^\W*(?-i:[A-ZÀÉÈ])\w+ (?=(?-i:[A-ZÀÉÈ]))",
    ),
    question_noun=anywhere(
        r"\b(?:quels?|quelles?) (?!est\b|sont\b|était\b|étaient\b|sera\b|seront\b)\w+|\bcombien d(?:e |')\w+"
    ),
    boundary=anywhere(
        r"[,;:]| (?:et|ou|mais|si|quand|lorsque|puis|car|parce|afin|avant|après|pendant|dès) ",
        r" (?:lorsqu|puisqu)'",
    ),
    subordinator=begins(
        r"avant|après|si|quand|lorsque|lorsqu'\w+|dès|pendant|tant|bien qu\w*|puisque?|comme|une fois|s'\w+"
    ),
    preposition=begins(_PREPOSITION),
    interrogative=re.compile(rf"\b(?:{_WH}|est|sont|a|ont|{_MODAL})\b|-{_SUBJECT}\b", re.IGNORECASE),
)
