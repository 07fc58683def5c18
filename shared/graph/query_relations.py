"""What a question asks of the graph: which relations, and how things are connected."""

import re
from functools import lru_cache

from shared.graph.relation_patterns import words_of
from shared.graph.relation_verbs import VERBS
from shared.graph.role_nouns import ROLES

# Questions are shorter; what comes after is not read.
MOST_LETTERS = 2000
_WORDS = re.compile(r"\w+(?:-\w+)*")
# Words of questions, beyond those that the patterns know, and by which several relations are asked at once.
_MORE: dict[str, tuple[str, ...]] = {
    "OWNED_BY": (
        "responsible",
        "accountable",
        "owning",
        "ownership",
        "zuständig",
        "verantwortlich",
        "responsable",
    ),
    "DEPENDS_ON": ("depending", "dependent", "rely", "needs", "upstream", "downstream", "abhängig"),
    "REPORTS_TO": ("reporting", "managed", "supervised"),
    "CAUSED_BY": ("why-did", "caused", "causing", "triggered", "root-cause"),
    "FIXED_BY": ("fixing", "resolution", "resolved"),
    "CHILD_OF": (
        "mom",
        "dad",
        "paternal",
        "maternal",
        "parents",
        "offspring",
        "mother-in-law",
        "father-in-law",
    ),
    "SPOUSE_OF": (
        "spouses",
        "wives",
        "husbands",
        "marry",
        "mother-in-law",
        "father-in-law",
        "stepmother",
        "stepfather",
    ),
    "GRANDCHILD_OF": ("grandparent", "grandparents", "grandchildren"),
    "SIBLING_OF": ("siblings", "uncle", "aunt", "brother-in-law", "sister-in-law"),
    "DIRECTED_BY": ("directors", "filmmaker"),
    "PERFORMED_BY": ("performers", "singers", "performed", "sang"),
    "COMPOSED_BY": ("lyricist", "musician"),
    "WRITTEN_BY": ("writers", "wrote"),
    "WORKS_FOR": ("employed", "works-for", "works-at"),
    "FOUNDED_BY": ("founders",),
    "LOCATED_IN": ("located", "situated", "headquarters", "headquartered"),
    "EDUCATED_AT": ("graduate", "study", "studied", "alma-mater", "educated"),
    "BORN_IN": ("birthplace", "place-of-birth", "was-born-in"),
    "DIED_IN": ("place-of-death",),
    "SUCCEEDED_BY": ("succeed", "replaced", "replace"),
    "PART_OF": ("belongs", "belong", "part-of", "teil-von"),
    "MEMBER_OF": ("members",),
}
# A mother's mother is no relation of its own: it is two steps of one.
_CHILDREN = frozenset(
    "grandfather grandmother grandparent grandparents uncle aunt paternal maternal mother-in-law".split()  # noqa: SIM905
)
# In every question, or too often of something else.
_COMMON = frozenset(
    """
    a an ein die der in part one to is of made make makes use uses call calls need contains contain
    includes include works working work works found say head report lead leads close closes closed
    address addresses run runs read write talks lies stands stand looks look after grund play show
    section division region community town city village district cause book film movie song music story
    single track album poem script novel short performed partner consumer section province county
    screenplay score soundtrack direction lock name named known also otherwise sold gave brought
    resulted results took takes take under built raised signed features featuring developer based using
    killed patch released capital solution trigger designed
    called use used included because under consumed born
    """.split()  # noqa: SIM905
)
_RESTORED = {
    "causes": "CAUSED_BY", "caused": "CAUSED_BY", "cause": "CAUSED_BY", "reports-to": "REPORTS_TO",
    "report-to": "REPORTS_TO", "part-of": "PART_OF", "capital-of": "CAPITAL_OF", "designed": "CREATED_BY",
    "killed": "KILLED_BY", "based-on": "BASED_ON", "named-after": "NAMED_AFTER", "known-as": "ALIAS_OF",
    "head-of": "LED_BY", "leads": "LED_BY", "uses": "DEPENDS_ON", "use": "DEPENDS_ON", "needs": "DEPENDS_ON",
    "calls": "DEPENDS_ON", "built": "CREATED_BY", "performed": "PERFORMED_BY", "developer": "CREATED_BY",
    "works-for": "WORKS_FOR", "work-for": "WORKS_FOR", "works-at": "WORKS_FOR", "employee": "WORKS_FOR",
    "replaced": "SUCCEEDED_BY", "closed": "FIXED_BY", "born": "BORN_IN", "died-in": "DIED_IN",
    "patched": "FIXED_BY", "patch": "FIXED_BY", "released": "PERFORMED_BY", "section-of": "PART_OF",
}  # fmt: skip
_CONNECTS = re.compile(
    r"\b(?:relationships?|relations?|connections?|links?|ties|dependenc(?:y|ies))\b.{0,80}?\b(?:between|among|with|to)\b"
    r"|\bhow\b.{0,80}\b(?:related|connected|linked|tied|interact|interacts|fit together)\b"
    r"|\b(?:related|connected|linked) to\b|\bin common\b|\b(?:path|chain)\b.{0,40}\b(?:from|between)\b"
    r"|\bimpact(?:ed|s)? (?:by|of|on)\b|\bwho (?:else )?(?:is|was|are) (?:involved|affected)\b"
    r"|\b(?:zusammenhang|beziehung|verbindung)\b.{0,40}\bzwischen\b|\b(?:rapport|relation|lien)\b.{0,40}\bentre\b"
    r"|\brelación\b.{0,40}\bentre\b",
    re.IGNORECASE,
)


def relations_asked(question: str) -> tuple[str, ...]:
    """The types of relation that the question asks about, in the order of its words."""
    words = [word.casefold() for word in _WORDS.findall(question[:MOST_LETTERS].replace("’", "'"))]
    lexicon = _lexicon()
    found: dict[str, None] = {}
    for place, word in enumerate(words):
        two = "-".join(words[place : place + 2])
        three = "-".join(words[place : place + 3])
        for said in (three, two, word):
            found |= dict.fromkeys(lexicon.get(said, ()))
        if word in _CHILDREN:
            found["CHILD_OF"] = None
    return tuple(found)


@lru_cache(1)
def _lexicon() -> dict[str, tuple[str, ...]]:
    """Of each word that asks, the relations it asks about."""
    lexicon: dict[str, dict[str, None]] = {}
    for type_ in dict.fromkeys([*VERBS, *ROLES]):
        for word in [*words_of(type_), *_MORE.get(type_, ())]:
            if word not in _COMMON:
                lexicon.setdefault(word, {})[type_] = None
    for word, type_ in _RESTORED.items():
        lexicon.setdefault(word, {})[type_] = None
    return {word: tuple(types) for word, types in lexicon.items()}


def connects(question: str) -> bool:
    """Whether it asks how things are connected, whatever the relation."""
    return _CONNECTS.search(question[:MOST_LETTERS]) is not None
