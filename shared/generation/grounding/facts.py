"""Facts that must match to the letter: numbers, dates, identifiers, addresses."""

import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import date

from shared.generation.grounding.joined_dates import days_within_ranges, with_months
from shared.generation.grounding.numbers import NUMBER, Fact, number_fact
from shared.text.language_detection import MONTH_NAMES, MONTHS

_DAY = r"(?P<{}>\d{{1,2}})(?:st|nd|rd|th|er|\.)?"
_YEAR = r"(?P<{}>[12]\d{{3}})"
_DATES = re.compile(
    rf"(?<![\w.]){_YEAR.format('y1')}-(?P<m1>\d{{2}})-(?P<d1>\d{{2}})(?:T[\d:.]+(?:Z|[+-][\d:]+)?)?(?!\w)"
    rf"|(?<![\w.])(?P<d2>\d{{1,2}})(?P<join>[./])(?P<m2>\d{{1,2}})(?P=join)(?P<y2>\d{{4}}|\d{{2}})(?![\w/])"
    rf"|(?<![\w.]){_DAY.format('d3')}\s+(?:of\s+|de\s+)?(?P<n3>{MONTH_NAMES})\b\.?(?:,?\s+(?:de\s+)?{_YEAR.format('y3')}\b)?"
    rf"|\b(?P<n4>{MONTH_NAMES})\b\.?\s+{_DAY.format('d4')}(?!\w)(?:,?\s+{_YEAR.format('y4')}\b)?"
    rf"|\b(?P<n5>{MONTH_NAMES})\b\.?,?\s+(?:de\s+)?{_YEAR.format('y5')}\b",
    re.IGNORECASE,
)
_REST = r"[^\s<>\"”»)\]]"
# Text that a client may show as a link: with a scheme, with //, or a host name alone.
_ADDRESS = re.compile(
    rf"https?://{_REST}+|\bwww\.{_REST}+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+|(?<![:\w/])//[\w\[]{_REST}*"
    rf"|(?<![\w@.-])(?:[\w-]+\.)+(?-i:[^\W\d_A-Z]{{2,24}}|[A-Z]{{2,24}})(?!\w)(?:(?::\d+)?[/?#]{_REST}*|:\d+)?",
    re.IGNORECASE,
)
# A switch, a call, a path.
_CODE = re.compile(
    r"(?<![\w-])--[a-z][\w-]*|[a-z_][\w.]*\(\)|(?<![\w/.<])(?:(?:~|\.{1,2})/[\w.-]+|/[a-z_.][\w.-]*(?=/\w))(?:/[\w.*-]+)*",
    re.IGNORECASE,
)
# These scripts, Korean included, join a number to the word that it counts.
_CJK = r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\u0e00-\u0e7f]"
_JOINED = re.compile(rf"(?<=\d)(?={_CJK})|(?<={_CJK})(?=\d)")
_SCHEME = re.compile(r"(?:https?:)?//|(?=www\.)")
_TOKEN = re.compile(r"(?<![\w])[^\W_](?:[\w./:#+@-]*\w)?")
_VERSION = re.compile(r"v(\d+(?:\.\d+)*)")
_CLOCK = re.compile(
    r"(?<![\w.:])(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))?[ \u00a0\u202f]?(?:(?P<half>[ap])\.?m\b\.?|uhr\b)",
    re.IGNORECASE,
)
_TIME = re.compile(r"\d{1,2}:\d{2}(?::\d{2})?")


def facts_in(text: str) -> list[Fact]:
    """Every fact of the text. Each character belongs to one fact at most, of the most specific kind."""
    all_facts: list[Fact] = []

    def address(match: re.Match[str]) -> str:
        all_facts.append(replace(_address(match[0]), text=match[0]))
        return " ; "

    def code(match: re.Match[str]) -> str:
        all_facts.append(replace(_fact(match[0].rstrip(".").casefold()), text=match[0]))
        return " ; "

    def clock(match: re.Match[str]) -> str:
        hour, half = int(match["hour"]), (match["half"] or "").casefold()
        if half:
            hour = hour % 12 + (12 if half == "p" else 0)
        all_facts.append(replace(_fact(f"{hour}:{match['minute'] or '00'}"), text=match[0]))
        return " ; "

    def dated(match: re.Match[str]) -> str:
        facts = _date(match)
        all_facts.extend(replace(fact, text=match[0]) for fact in facts)
        return " ; " if facts else match[0]

    def token(match: re.Match[str]) -> str:
        fact = _identifier(match[0])
        if fact is None:
            return match[0]
        all_facts.append(replace(fact, text=match[0]))
        return " ; "

    text = with_months(_JOINED.sub(" ", text))
    rest = _TOKEN.sub(
        token, _DATES.sub(dated, _CLOCK.sub(clock, _CODE.sub(code, _ADDRESS.sub(address, text))))
    )
    return all_facts + [number_fact(match) for match in NUMBER.finditer(rest)]


def forms_of(facts: Iterable[Fact]) -> frozenset[str]:
    """The forms of all these facts."""
    return frozenset(form for fact in facts for form in fact.forms)


def forms_within_ranges(text: str) -> frozenset[str]:
    """The forms of every date within the text's ranges: of 13 August for "10 to 16 August"."""
    return frozenset(
        f"--{month}-{day}" for month, day in days_within_ranges(text, _DATES, _year_month_and_day)
    )


def date_facts(moment: date) -> list[Fact]:
    """The facts of a document's date, which an answer may state though the text does not."""
    return facts_in(f"{moment:%Y-%m-%d}")


def _fact(*forms: str) -> Fact:
    return Fact(frozenset(forms), frozenset(forms))


def _address(address: str) -> Fact:
    """An address without its scheme. A source with the address of a page states its host too."""
    plain = _SCHEME.sub("", address.rstrip(".,;:!?'’").casefold().rstrip("/"), count=1).removeprefix("www.")
    host = re.split(r"[/?#]", plain, maxsplit=1)[0]
    return Fact(frozenset([plain, host]), frozenset([plain]))


def _identifier(token: str) -> Fact | None:
    """A word with digits and letters, or with an underscore: INC-4821, rag_match, v1.2."""
    plain = token.casefold()
    if _TIME.fullmatch(plain):
        return _fact(plain.removeprefix("0"))
    if plain.count(".") > 1 and plain.replace(".", "").isdigit():
        return _fact(plain)
    if "_" in token.strip("_"):
        return _fact(re.sub(r"[-_]", "", plain))
    numeric = NUMBER.match(token)
    if not re.search(r"\d", token) or not re.search(r"[^\W\d_]", token) or (numeric and numeric.start() == 0):
        return None
    if version := _VERSION.fullmatch(plain):
        return Fact(frozenset([plain, version[1], f"bare:{version[1]}"]), frozenset([plain, version[1]]))
    return _fact(re.sub(r"[-_]", "", plain))


def _parts(match: re.Match[str]) -> dict[str, str]:
    """The parts of a date: y, m or n (a month's name), d."""
    return {
        name[0]: value for name, value in match.groupdict().items() if value is not None and name != "join"
    }


def _year_month_and_day(match: re.Match[str]) -> tuple[int, ...]:
    """Nothing for a month alone and a date with slashes, of which either number may be the month."""
    part = _parts(match)
    if "d" not in part or match["join"] == "/":
        return ()
    month = MONTHS[part["n"].casefold()] if "n" in part else int(part["m"])
    return int(part.get("y", "0")), month, int(part["d"])


def _date(match: re.Match[str]) -> list[Fact]:
    """A fact for day and month and one for the year, which a text may give once for many dates."""
    part = _parts(match)
    months = [MONTHS[part["n"].casefold()]] if "n" in part else [int(part["m"])]
    days = [int(part["d"])] if "d" in part else []
    if "join" in match.groupdict() and match["join"] == "/":
        # Either of the two may be the month.
        months, days = [months[0], days[0]], [days[0], months[0]]
    year = part.get("y", "")
    year = f"20{year}" if len(year) == 2 else year
    pairs = list(zip(months, days, strict=True)) if days else []
    if any(not (1 <= one <= 31 and 1 <= other <= 31) for one, other in pairs):
        return []
    forms = {f"--{month}-{day}" for month, day in pairs}
    partial = {f"{year}-{month}" for month in months} if year else set()
    spans = [Fact(frozenset(forms | partial), frozenset(forms or partial))]
    return [*spans, _fact(year)] if year else spans
