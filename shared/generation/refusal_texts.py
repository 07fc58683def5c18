"""Refusals: the texts in the place of an answer, in the language of the question.

The rag contract fixes its text to the letter: it takes `RAG_INSUFFICIENT`, whatever the question's language,
and lists the sources behind it.
"""

from collections.abc import Sequence

from shared.text.language_detection import ENGLISH, in_language_of
from shared.types import Confidence, Judgement

_INSUFFICIENT: dict[str, str] = {
    "en": "I don't have enough relevant information to answer this question confidently.",
    "de": "Mir fehlen genügend passende Informationen, um diese Frage zuverlässig zu beantworten.",
    "fr": "Je n'ai pas assez d'informations pertinentes pour répondre à cette question avec certitude.",
    "es": "No tengo suficiente información relevante para responder a esta pregunta con seguridad.",
    "nl": "Ik heb niet genoeg relevante informatie om deze vraag met zekerheid te beantwoorden.",
    "pt": "Não tenho informação relevante suficiente para responder a esta pergunta com segurança.",
    "it": "Non ho abbastanza informazioni pertinenti per rispondere a questa domanda con sicurezza.",
}
_NOTHING_IN_NAMESPACE: dict[str, str] = {
    "en": "There is nothing in this namespace that answers this question.",
    "de": "In diesem Namespace gibt es nichts, was diese Frage beantwortet.",
    "fr": "Il n'y a rien dans cet espace de noms qui réponde à cette question.",
    "es": "No hay nada en este espacio de nombres que responda a esta pregunta.",
    "nl": "Er staat niets in deze namespace dat deze vraag beantwoordt.",
    "pt": "Não há nada neste espaço de nomes que responda a esta pergunta.",
    "it": "In questo spazio dei nomi non c'è nulla che risponda a questa domanda.",
}
_MISSING: dict[str, str] = {
    "en": "The passages found do not mention {}.",
    "de": "Die gefundenen Textstellen erwähnen {} nicht.",
    "fr": "Les passages trouvés ne mentionnent pas {}.",
    "es": "Los pasajes encontrados no mencionan {}.",
    "nl": "De gevonden passages vermelden {} niet.",
    "pt": "As passagens encontradas não mencionam {}.",
    "it": "I passaggi trovati non menzionano {}.",
}
INSUFFICIENT = _INSUFFICIENT[ENGLISH]
RAG_INSUFFICIENT = f"{INSUFFICIENT} Here are the most relevant sources I found:"


def insufficient(question: str) -> str:
    """The refusal where confidence withholds an answer."""
    return in_language_of(question, _INSUFFICIENT)


def missing_note(question: str, judgement: Judgement) -> str:
    """A sentence before an answer that names what the question mentions and the matches do not; empty where
    nothing is missing, or low confidence withholds the answer."""
    if not judgement.missing or judgement.confidence is Confidence.LOW:
        return ""
    return not_mentioned(question, judgement.missing)


def not_mentioned(question: str, words: Sequence[str]) -> str:
    """The sentence that the passages do not mention these words."""
    return in_language_of(question, _MISSING).format(", ".join(words))


def nothing_in_namespace(question: str) -> str:
    """The refusal where a search of a namespace found no passage at all."""
    return in_language_of(question, _NOTHING_IN_NAMESPACE)
