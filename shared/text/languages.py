"""The language of a question: English, German, French or Spanish.

A question is too short for statistics of letters. Its function words decide: each of them counts for every
language that has it. Without any, and for any other language, the answer is English.
"""

import re
from typing import Literal, get_args

Language = Literal["en", "de", "fr", "es"]
ENGLISH: Language = "en"
# The end of a longer text decides nothing.
MAX_CHARACTERS = 2_000
_WORD = re.compile(r"[^\W\d_]+")
# Articles, pronouns, prepositions, conjunctions, question words, and the commonest forms of auxiliary verbs.
FUNCTION_WORDS: dict[Language, frozenset[str]] = {
    "en": frozenset(
        """
        a about after all also am an and any are as at be been before being between both but by can could did
        do does doing each else even every for from had has have he her hers him his how i if in instead into
        is it its itself just many may me might more most much must my no not of often on one only or other
        our out over per same shall she should since so some such than that the their them then there these
        they this those through to too under until up us was we were what when where whether which while who
        whom whose why will with without would you your
        """.split()  # noqa: SIM905  # a list of strings would be a page long
    ),
    "de": frozenset(
        """
        ab aber alle allen aller alles als also am an auch auf aus bei beim bevor bis da damit dann darf das
        dass dem den denen denn der des dich die dies diese diesem diesen dieser dieses doch dort du durch
        dürfen ein eine einem einen einer eines er es euch falls für gab geben gibt hat hatte haben ich ihm
        ihn ihnen ihr ihre ihrem ihren ihrer im in ist ja jede jedem jeden jeder jedes kann kein keine können
        man mehr mein meine mich mir mit muss müssen nach nachdem nicht noch nun nur ob oder ohne pro schon
        sein seine seinem seinen seiner seit sich sie sind so soll sollen sollte sondern um und uns unser
        unsere unserem unseren unter vom von vor wann war waren warum was weil welche welchem welchen welcher
        welches wem wen wenn wer werden weshalb wessen wie wieso wieviel will wir wird wo wohin woher wofür
        worden wurde wurden während zu zum zur über
        """.split()  # noqa: SIM905
    ),
    "fr": frozenset(
        """
        a ai après au aucun aucune aura aussi autre aux avait avant avec avez avons c car ce cela celle celles
        celui ces cet cette ceux chaque chez combien comme comment d dans de depuis des dois doit doivent donc
        dont du elle elles en encore entre est et eux faut fois il ils j je jusque l la le les leur leurs
        lorsque lui là m ma mais me mes moi moins même n ne nos notre nous on ont ou où par pas pendant peut
        peuvent peux plus pour pourquoi puis pu qu quand que quel quelle quelles quels qui quoi s sa sans se
        sera seront ses si son sont sous sur t ta tes ton tous tout toute toutes tu un une vers vos votre vous
        y à été être était
        """.split()  # noqa: SIM905
    ),
    "es": frozenset(
        """
        a al algo algún alguna alguno ante antes aquel aquella así aunque bajo cada como con contra cual
        cuando cuanta cuantas cuanto cuantos cuya cuyo cuál cuáles cuándo cuánta cuántas cuánto cuántos cómo
        de debe deben debo del desde donde dos durante dónde e el ella ellas ellos en entre era eran es esa
        esas ese eso esos esta estas este esto estos está están fue fueron ha hace hacia han hasta hay haya
        hemos la las le les lo los me mi mis mucho muy más ni no nos nosotros nuestra nuestras nuestro
        nuestros o os otra otro para pero por porque pueda puede pueden puedo que quien quiénes quién qué se
        sea según ser si sido sin sino sobre son su sus sí también te tengo tiene tienen todas todo todos tras
        tu tus un una uno unos y ya él
        """.split()  # noqa: SIM905
    ),
}
# Letters that one of the four has and the others hardly use.
_LETTERS: dict[Language, re.Pattern[str]] = {
    "de": re.compile(r"[äöüß]"),
    "fr": re.compile(r"[àâèêëîïôùûçœ]"),
    "es": re.compile(r"[áíóúñ¿¡]"),
}


def language_of(question: str) -> Language:
    """The language that most of the question's function words belong to; letters decide between equals."""
    text = question[:MAX_CHARACTERS].casefold()
    words = _WORD.findall(text)

    def evidence(language: Language) -> tuple[int, bool]:
        count = sum(word in FUNCTION_WORDS[language] for word in words)
        letters = _LETTERS.get(language)
        return count, bool(letters and letters.search(text))

    # Of equals the first: English.
    return max(get_args(Language), key=evidence)
