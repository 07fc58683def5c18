"""The content words of a sentence as the check counts them: stems of words, without numbers.

Scripts without spaces have pairs of letters for words, as search engines do.
"""

import re
from collections.abc import Iterable

from shared.text.stemming import STOPWORDS, pairs, unspaced

# Longer than in search, where a word too many costs little: organize is not organic.
LETTERS = 6
_WORD = re.compile(r"[^\W\d_]+(?:[’'][^\W\d_]+)*")
_POSSESSIVE = re.compile(r"[’'](?:s|S)?$")
# Doubt and don't are no two words of one stem: what a word denies is judged by itself.
_DENIED = re.compile(r"n[’']t$", re.IGNORECASE)
# Words that link or weigh statements and are in every answer; negations are judged by themselves.
_LINKING = frozenset(
    """
    about according additionally after all also although another as because been before being both but each
    either et few furthermore given hence here however if include included includes including into just may
    might more moreover most must nor not no never neither none only other others overall per provided same
    several since so some such than then thereby therefore these thus those though through under until upon
    very via well whereas whether while without within yes you your yet they she he her his him them us

    aber als also am an auch auf aus bei beim bis da damit dann das dass dem den denn der des die dies diese
    dieser dieses doch du durch ein eine einem einen einer eines er es für hat haben hatte ich ihr im in ist
    ja je jedoch kann kein keine man mit nach nicht noch nur ob oder ohne sein seine sich sie sind so sowie
    über um und uns unter vom von vor war waren wenn wer werden wie wird wir wo wurde wurden zu zum zur

    au aux avec ce cela ces cette comme dans de des du elle elles en est et il ils je la le les leur leurs
    lui mais ne nous on ont ou où par pas pour qu que qui sa sans se ses si son sont sur un une vous était

    al como con cual cuando del desde donde el ella en entre era es esta este esto fue ha han hay la las lo
    los más muy no para pero por que se ser si sin sobre su sus también un una y ya
    """.split()  # noqa: SIM905  # a list of strings would be a page long
)
_ENDINGS = (
    ("ies", "y"),
    ("ions", ""),
    ("ion", ""),
    ("ings", ""),
    ("ing", ""),
    ("ed", ""),
    ("es", ""),
    ("s", ""),
    ("e", ""),
)
_IRREGULAR = {
    form: word
    for word, forms in {
        "undo": "undone undid", "pay": "paid", "sell": "sold", "buy": "bought", "keep": "kept",
        "hold": "held", "make": "made", "give": "given gave", "take": "taken took", "write": "written wrote",
        "build": "built", "send": "sent", "lose": "lost", "run": "ran running", "begin": "begun began",
        "choose": "chosen chose", "forbid": "forbidden forbade", "show": "shown", "know": "known knew",
    }.items()
    for form in forms.split()
}  # fmt: skip
_SKIPPED = STOPWORDS | _LINKING


def words_of(text: str) -> list[str]:
    """Every word in order, case-folded, whole: function words too."""
    found: list[str] = []
    for word in _WORD.findall(text):
        folded = _DENIED.sub("", _POSSESSIVE.sub("", word)).casefold()
        found += pairs(folded) if unspaced(folded) else [folded]
    return [word for word in found if word]


def says_nothing(word: str) -> bool:
    """Whether a case-folded word only links others."""
    return word in _SKIPPED


def content(words: Iterable[str]) -> frozenset[str]:
    """The stems of those that say something."""
    return frozenset(stem(word) for word in words if word not in _SKIPPED and len(word) > 1)


def stem(word: str) -> str:
    """Cut, without an ending either: valve and valves, study and studies, sharing and share."""
    word = _IRREGULAR.get(word, word)
    for ending, kept in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= (3 if len(word) <= LETTERS else 4):
            word = word[: len(word) - len(ending)] + kept
            break
    return word[:LETTERS]
