"""Nouns for somebody's part in a relation, as in X is the mother of Y, and Y's mother is X: data.

Of each relation: nouns for who is its object (owner, of OWNED_BY), and nouns for who is its subject.
"""

from collections.abc import Mapping

ROLES: Mapping[str, tuple[str, str]] = {
    "OWNED_BY": (
        (
            "owner owners maintainer maintainers custodian proprietor co-owner eigentümer eigentümerin "
            "besitzer verantwortlicher verantwortliche propriétaire propriétaires propietario propietaria "
            "dueño"
        ),
        "",
    ),
    "PART_OF": (
        "",
        (
            "part component module subsystem section division branch district suburb borough "
            "neighbourhood neighborhood"
        ),
    ),
    "SUBSIDIARY_OF": (
        "parent-company",
        "subsidiary tochtergesellschaft filiale filial",
    ),
    "MEMBER_OF": (
        "",
        "member members mitglied mitglieder membre membres miembro miembros",
    ),
    "DEPENDS_ON": (
        (
            "dependency dependencies abhängigkeit abhängigkeiten dépendance dépendances dependencia "
            "dependencias"
        ),
        "consumer consumers",
    ),
    "REPORTS_TO": (
        "manager boss supervisor line-manager vorgesetzter vorgesetzte supérieur jefe jefa",
        "report subordinate",
    ),
    "LED_BY": (
        (
            "leader lead head ceo cto cfo chairman chairwoman chairperson president chief-executive "
            "captain coach principal dean mayor commander leiter leiterin chef directrice líder"
        ),
        "",
    ),
    "CAUSED_BY": (
        "cause causes root-cause trigger ursache grund cause-racine causa causas",
        "",
    ),
    "FIXED_BY": (
        "fix remedy solution workaround patch lösung correctif solución",
        "",
    ),
    "WORKS_FOR": (
        "employer",
        "employee employees engineer mitarbeiter mitarbeiterin employé employée empleado empleada",
    ),
    "LOCATED_IN": (
        "",
        "village town city municipality commune suburb region county province peninsula",
    ),
    "CAPITAL_OF": (
        "",
        "capital hauptstadt capitale",
    ),
    "BORN_IN": (
        "birthplace hometown",
        "",
    ),
    "CHILD_OF": (
        "mother father parent parents stepmother stepfather mutter vater eltern mère père madre padre",
        ("son daughter child children sons daughters stepson stepdaughter sohn tochter fils fille hijo hija"),
    ),
    "SPOUSE_OF": (
        "",
        "wife husband spouse widow widower consort partner ehefrau ehemann épouse époux esposa esposo",
    ),
    "SIBLING_OF": (
        "",
        (
            "brother sister sibling brothers sisters half-brother half-sister twin bruder schwester frère "
            "sœur hermano hermana"
        ),
    ),
    "GRANDCHILD_OF": (
        "grandfather grandmother",
        "grandson granddaughter grandchild",
    ),
    "COUSIN_OF": (
        "",
        "cousin nephew niece uncle aunt",
    ),
    "DIRECTED_BY": (
        "director co-director regisseur regisseurin réalisateur réalisatrice",
        "",
    ),
    "WRITTEN_BY": (
        "author authors writer screenwriter scriptwriter novelist autor autorin auteur autrice autora",
        "",
    ),
    "PRODUCED_BY": (
        "producer producers",
        "",
    ),
    "COMPOSED_BY": (
        "composer composers",
        "",
    ),
    "PERFORMED_BY": (
        "performer singer vocalist",
        "",
    ),
    "CREATED_BY": (
        "creator creators designer inventor developer developers architect",
        "",
    ),
    "FOUNDED_BY": (
        "founder founders co-founder co-founders gründer gründerin fondateur fundador",
        "",
    ),
    "SUCCEEDED_BY": (
        "successor nachfolger successeur sucesor",
        "predecessor vorgänger prédécesseur predecesor",
    ),
    "PUBLISHED_BY": (
        "publisher distributor",
        "",
    ),
    "APPROVED_BY": (
        "approver",
        "",
    ),
}
# These name one thing and its like: they read the same both ways, and are told once.
SYMMETRIC = frozenset({"SPOUSE_OF", "SIBLING_OF", "COUSIN_OF"})
# Of what kind the two ends are, where nothing else tells.
ENDS: Mapping[str, tuple[str | None, str | None]] = {
    "REPORTS_TO": ("person", "person"), "CHILD_OF": ("person", "person"), "SPOUSE_OF": ("person", "person"),
    "SIBLING_OF": ("person", "person"), "GRANDCHILD_OF": ("person", "person"),
    "COUSIN_OF": ("person", "person"),
    "DIRECTED_BY": ("work", "person"), "WRITTEN_BY": ("work", "person"), "COMPOSED_BY": ("work", "person"),
    "STARS": ("work", "person"), "BORN_IN": ("person", "place"), "DIED_IN": ("person", "place"),
    "LIVES_IN": ("person", "place"), "LOCATED_IN": (None, "place"), "CAPITAL_OF": ("place", "place"),
    "EDUCATED_AT": ("person", "organization"), "WORKS_FOR": ("person", None), "LED_BY": (None, "person"),
    "FOUNDED_BY": (None, "person"), "PERFORMED_BY": ("work", None), "PRODUCED_BY": ("work", None),
}  # fmt: skip
