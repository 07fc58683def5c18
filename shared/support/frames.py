"""What an answer says of itself, and not of the world: headings, lead-ins, that nothing was found."""

import re

from shared.support.words import content, words_of

_HEADING = re.compile(r"#{1,6}\s|\*\*[^*]+\*\*:?$|__[^_]+__:?$")
_LONGEST_HEADING = 8
_RULE = re.compile(r"[\W_]*")
_QUESTION = re.compile(r"[?？؟]\W*$")
# Words of lead-ins: a sentence of nothing else only says that an answer follows.
_ABOUT_ANSWERS = content(
    words_of(
        """
        answer answers based below brief context details document documents example examples excerpts find
        following found hope helps information key list main notes overview passages point points provided
        question questions relevant result results said says show shown sources steps stated summary
        summarize sum text title know let me ask feel free sure certainly yes antwort auszüge beispiel
        beispiele dokument dokumente dokumenten folgende folgenden frage fragen gefunden informationen
        kontext punkte quellen schritte überblick unten wichtigsten zusammenfassung zusammengefasst
        ci-dessous contexte documents exemple extraits informations points questions réponse résumé suivants
        suivantes trouvé voici étapes contexto documentos ejemplo encontré fuentes información pasos
        preguntas puntos respuesta resumen siguientes
        """
    )
)
_SOURCES = r"(?:context|documents?|sources?|excerpts?|passages?|texts?|information|materials?|conversation)"
_NOTHING = re.compile(
    rf"^\W*(?:(?:unfortunately|however|i'?m sorry|sorry|leider|malheureusement)\b\W*(?:but\s+)?)?(?:"
    rf"(?:the|these|those|none of the|no)\s+(?:\w+\s+){{0,2}}{_SOURCES}\s+(?:\w+\s+){{0,3}}?"
    rf"(?:(?:do|does|did)(?:\s+not|n't)|doesn't|don't|(?:is|are)(?:\s+not|n't)|says?|mentions?|contains?)\s"
    rf"|(?:i|we)\s+(?:do not|don't|cannot|can't|could not|couldn't|am unable|was unable|are unable)\s"
    rf"(?:to\s+)?(?:have|find|found|answer|know|say|tell|determine|see)\b"
    rf"|there (?:is|are|was|were)(?: not|n't)?(?: no| any| not)? (?:enough |sufficient |any |relevant )*"
    rf"(?:information|mention|details|data|answer)\b"
    rf"|(?:die|der|das|den|in den|im)\s+(?:\w+\s+){{0,2}}"
    rf"(?:dokumente[n]?|quellen|kontext|auszüge[n]?|texte[n]?)\s+.*\b(?:nicht|keine?[nrs]?)\b"
    rf"|ich (?:habe|kann|konnte|finde|weiß)\s+.*\b(?:nicht|keine?[nrs]?)\b"
    rf"|(?:le|les|ce|ces)\s+(?:\w+\s+){{0,2}}(?:contexte|documents?|sources?|extraits?|textes?)\s+ne\b"
    rf"|je (?:ne|n')\s*(?:\w+\s+)+pas\b"
    rf"|(?:el|los|las|la)\s+(?:contexto|documentos?|fuentes?|textos?)\s+no\b)",
    re.IGNORECASE,
)
# What comes behind may be anything.
_TURN = re.compile(
    r"\b(?:but|however|so|although|because|therefore|since|which means|aber|jedoch|daher"
    r"|deshalb|mais|donc|pero)\b|[;:–—]\s",
    re.IGNORECASE,
)


def frames(text: str, *, heading: bool = False) -> bool:
    """Whether the text, without names and facts (which the check sees to), states nothing."""
    if _RULE.fullmatch(text) or _QUESTION.search(text):
        return True
    words = content(words_of(text))
    if heading or _HEADING.match(text):
        return len(words) <= _LONGEST_HEADING
    if words and words <= _ABOUT_ANSWERS:
        return True
    nothing = _NOTHING.match(text.replace("’", "'"))
    return nothing is not None and _TURN.search(text, nothing.end()) is None
