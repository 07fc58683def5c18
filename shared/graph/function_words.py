"""Small words that relations hinge on: helping verbs, denials, doubts, what may not stand between: data."""

COPULAS = frozenset(
    """
    is are was were be been being became becomes remains ist sind war est était es era fue
    """.split()  # noqa: SIM905
)
AUXILIARIES = COPULAS | frozenset(
    """
    has have had will would can could may might must shall should to also still now then later first
    again already currently jointly directly fully formerly both all 's been being wurde wurden wird
    werden hat a été ha sido was used probably possibly reportedly allegedly apparently perhaps likely
    partly mainly mostly largely itself subsequently previously initially originally eventually finally
    soon fait forma se
    """.split()  # noqa: SIM905
)
DENIALS = frozenset(
    """
    not never no neither nor without cannot n't don't doesn't didn't isn't aren't wasn't weren't won't
    can't nicht kein keine nie ne pas jamais nunca jamás hardly instead longer
    """.split()  # noqa: SIM905
)
HEDGES = frozenset(
    """
    may might could possibly probably perhaps maybe reportedly allegedly apparently likely suspected
    suspects suspect believed believe believes seems seem appears appear rumoured rumored claimed claims
    if whether should would vielleicht wahrscheinlich vermutlich könnte peut-être probablement quizás
    probablemente podría planned proposed
    """.split()  # noqa: SIM905
)
# Behind a phrase, up to its object: what may not stand between.
BLOCKS = frozenset(
    """
    and or but of by for in to with that who which whose from on at not no as when while because if is
    was are were be has had have during under over into about through against between among around
    without via per like upon up out off down it he she they we you i this these those after before
    since until than so und oder von et ou y o
    """.split()  # noqa: SIM905
)
JOINTS = frozenset({"and", "&", "und", "et", "y", "or", "oder", "ou", "e"})
# Behind the last name of a list: anything else is what that name does, in a clause of its own.
ENDINGS = frozenset(
    """
    . , ; : ) ( | / ! - – — " ” ' * in on at for with by from of to as who which that until since when while
    but so and or during after before via under ab because if though where
    """.split()  # noqa: SIM905
) | {""}
ARTICLES = frozenset(
    """
    the a an our their its his her both dr mr mrs ms sir emperor king der die das dem den le la les el
    """.split()  # noqa: SIM905
)
LISTING = JOINTS | {","}
GOING_ON = LISTING | {"then", "but"}
LEADING = ARTICLES | {'"', "`", "“"}
PRONOUNS = frozenset({"who", "which", "that", "qui", "que", "der", "die", "das"})
OF = frozenset({"of", "for", "to", "von", "de", "du", "des", "del", "der", "in"})
LAST = frozenset(
    """
    verursacht ausgelöst behoben gelöst korrigiert betreut verantwortet geleitet geführt benötigt
    genutzt verwendet entwickelt gegründet geschrieben
    """.split()  # noqa: SIM905
)
GAP = 4
