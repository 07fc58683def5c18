"""Refusals: the texts in the place of an answer, in the language of the question.

The rag contract fixes its text to the letter: it takes `INSUFFICIENT`, whatever the question's language.
"""

from shared.text.language_detection import ENGLISH, Language, language_of

_INSUFFICIENT: dict[Language, str] = {
    "en": (
        "I don't have enough relevant information to answer this question confidently. "
        "Here are the most relevant sources I found:"
    ),
    "de": (
        "Mir fehlen genügend passende Informationen, um diese Frage zuverlässig zu beantworten. "
        "Das sind die Quellen, die am besten dazu passen:"
    ),
    "fr": (
        "Je n'ai pas assez d'informations pertinentes pour répondre à cette question avec certitude. "
        "Voici les sources les plus pertinentes que j'ai trouvées :"
    ),
    "es": (
        "No tengo suficiente información relevante para responder a esta pregunta con seguridad. "
        "Estas son las fuentes más relevantes que encontré:"
    ),
}
_NOTHING_IN_NAMESPACE: dict[Language, str] = {
    "en": "There is nothing in this namespace that answers this question.",
    "de": "In diesem Namespace gibt es nichts, was diese Frage beantwortet.",
    "fr": "Il n'y a rien dans cet espace de noms qui réponde à cette question.",
    "es": "No hay nada en este espacio de nombres que responda a esta pregunta.",
}
INSUFFICIENT = _INSUFFICIENT[ENGLISH]


def insufficient(question: str) -> str:
    """The refusal where confidence withholds an answer."""
    return _INSUFFICIENT[language_of(question)]


def nothing_in_namespace(question: str) -> str:
    """The refusal where a search of a namespace found no passage at all."""
    return _NOTHING_IN_NAMESPACE[language_of(question)]
