"""Of what kind a name is, by its own words: suffixes of companies, heads such as team, titles of persons."""

import re
from functools import lru_cache

ORGANIZATIONS = frozenset(
    """
    inc incorporated ltd limited llc llp plc corp corporation company co gmbh ag kg kgaa se sa sas sarl
    srl spa bv nv oy ab as aps pty cooperative university college institute institution school academy
    bank agency department ministry council committee commission foundation association union federation
    society group holdings partners ventures labs laboratory laboratories instruments industries systems
    technologies airlines airways records pictures studios entertainment productions press publishing
    museum hospital church abbey club party parliament senate congress court police army navy orchestra
    band network authority bureau office consortium league universität hochschule verein gesellschaft
    stiftung verlag behörde ministerium université société banque ministère agence universidad sociedad
    banco ministerio agencia fundación coopérative cooperativa genossenschaft
    """.split()  # noqa: SIM905  # a list of strings would be a page long
)
TEAMS = frozenset("team squad guild crew tribe équipe equipo gruppe".split())  # noqa: SIM905
SERVICES = frozenset(
    """
    service api server database queue worker gateway pipeline dashboard app application backend frontend
    cluster platform cloud proxy cache scheduler sdk cli library plugin connector microservice portal
    """.split()  # noqa: SIM905
)
PLACES = frozenset(
    """
    river lake mountain mountains mount city county island islands street avenue road square airport
    province district region state republic kingdom valley bay sea ocean desert forest park bridge
    station village town municipality peninsula creek harbour harbor port canyon castle palace hills
    beach
    """.split()  # noqa: SIM905
)
WORKS = frozenset("symphony sonata concerto chronicles trilogy soundtrack anthem".split())  # noqa: SIM905
# Before a person; no part of the name. A dot may follow.
HONORIFICS = frozenset(
    """
    mr mrs ms miss mx dr prof professor sir dame lord lady herr frau monsieur madame mme señor señora sr
    sra don doña
    """.split()  # noqa: SIM905
)
# Before a person, and part of what they are called.
RANKS = frozenset(
    """
    king queen emperor empress prince princess duke duchess count countess earl baron baroness bishop
    archbishop pope captain colonel general major lieutenant sergeant president senator judge
    """.split()  # noqa: SIM905
)
_HEADS = (
    (TEAMS, "team"),
    (SERVICES, "service"),
    (ORGANIZATIONS, "organization"),
    (PLACES, "place"),
    (WORKS, "work"),
)
_WORD = re.compile(r"[^\W_]+")
_NUMERAL = re.compile(r"(?=[IVX])(?:X{0,2}(?:IX|IV|V?I{0,3}))")
# World War II, Phase IV.
_COUNTED = frozenset("war wars phase part type class tier volume chapter mark olympics stage level".split())  # noqa: SIM905
_OF = frozenset({"of", "for", "de", "der", "du", "für", "des"})


@lru_cache(8192)
def kind_of(name: str) -> str:
    """By its words alone: name, where they do not tell."""
    words = [word.lower() for word in _WORD.findall(name)]
    if not words:
        return "name"
    last = words[-1].removesuffix("s")
    for heads, kind in _HEADS:
        if len(words) > 1 and (last in heads or words[-1] in heads):
            return kind
    for place, word in enumerate(words[1:], 1):
        if word in _OF and words[place - 1] in ORGANIZATIONS:
            return "organization"
        if word in _OF and words[place - 1] in PLACES:
            return "place"
    if words[0] in {"mount", "lake", "river", "saint", "gulf", "cape", "port"} and len(words) > 1:
        return "place"
    if not _COUNTED.isdisjoint(words):
        return "name"
    if words[0] in RANKS or _NUMERAL.fullmatch(name.rsplit(" ", 1)[-1]):
        return "person"
    if len(words) > 1 and re.search(r"\b[A-Z]\. ", name):
        return "person"
    return "name"


def kind_of_identifier(said: str) -> str:
    """A service or a team where its last part says so: billing-service, payments_api."""
    last = re.split(r"[-_]", said.lower())[-1].removesuffix("s")
    if last in TEAMS:
        return "team"
    return "service" if last in SERVICES | {"db", "bot", "job", "store", "lambda"} else "identifier"
