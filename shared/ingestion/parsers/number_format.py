"""Numbers, dates and times as Excel shows them, by the codes of their formats (ECMA-376, 18.8.31)."""

import re
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache

# The formats that files name by number alone. 27 to 36 and 50 to 58 are dates of Asian languages.
BUILT_IN: Mapping[int, str] = {
    1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 9: "0%", 10: "0.00%", 11: "0.00E+00", 12: "# ?/?",
    13: "# ??/??",
    **dict.fromkeys((14, 15, *range(27, 32), 36, *range(50, 59)), "yyyy-mm-dd"), 16: "mm-dd", 17: "yyyy-mm",
    18: "h:mm AM/PM", 19: "h:mm:ss AM/PM", 20: "h:mm", 21: "h:mm:ss", 22: "yyyy-mm-dd h:mm",
    **dict.fromkeys(range(32, 36), "h:mm:ss"),
    37: "#,##0;(#,##0)", 38: "#,##0;(#,##0)", 39: "#,##0.00;(#,##0.00)", 40: "#,##0.00;(#,##0.00)",
    41: '#,##0;-#,##0;"-"', 42: '"$"#,##0;-"$"#,##0;"-"', 43: '#,##0.00;-#,##0.00;"-"',
    44: '"$"#,##0.00;-"$"#,##0.00;"-"', 45: "mm:ss", 46: "[h]:mm:ss", 47: "mm:ss.0", 48: "##0.0E+0", 49: "@",
}  # fmt: skip
# Excel shows larger numbers of the format General with an exponent; identifiers would lose their last digits.
_MAX_DIGITS = 15
_LAST_DATE = 2_958_466
_TOKEN = re.compile(
    r'"(?P<quoted>[^"]*)"?|\\(?P<escaped>.)|[_*].|\[(?P<bracket>[^\]]*)\]|(?P<general>General)'
    r"|(?P<half>AM/PM|A/P)|(?P<exponent>E[+-])|(?P<time>y+|m+|d+|h+|s+|b+|g+|e+)|(?P<digit>[0#?])"
    r"|(?P<mark>[.,%/@])|(?P<other>.)",
    re.IGNORECASE | re.DOTALL,
)
_SECTIONS = re.compile(r'(?:"[^"]*"?|\\.|[_*].|\[[^\]]*\]|[^;"\\_*\[])*', re.DOTALL)
_CONDITION = re.compile(r"(<=|>=|<>|<|>|=)\s*(-?[\d.]+)")
_COMPARED = {
    "<": lambda a, b: a < b, ">": lambda a, b: a > b, "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b, "=": lambda a, b: a == b, "<>": lambda a, b: a != b,
}  # fmt: skip

# Spaces, other than one between thousands.
_SPACES = re.compile(r"(?<!\d)\s+|\s+(?!\d)|[^\S\u00a0]+")
# The characters between thousands and before decimals.
Separators = tuple[str, str]
ENGLISH: Separators = (",", ".")
# Numbers that mean the same in all languages, and, for unknown languages, without commas but beside decimals:
# 2,180 is 2.18 in half of them.
PLAIN: Separators = ("", ".")
UNKNOWN: Separators = ("", "")
_DECIMALS = re.compile(r"\.[0#?]")

# (kind, text): the kinds are the groups of _TOKEN, "text" for literals, and "elapsed" for [h].
_Token = tuple[str, str]
_Section = tuple[tuple[str, Decimal] | None, list[_Token]]


def shown_number(
    value: float, code: str, *, from_1904: bool = False, separators: Separators = ENGLISH
) -> str:
    """The number in the format of that code. Dates are ISO dates, as precise as their format."""
    if separators == UNKNOWN:
        separators = ENGLISH if _DECIMALS.search(code) else PLAIN
    if code in ("", "General"):
        return _general(value, separators)
    try:
        if plain := _plain(code):
            return _shown_plain(value, *plain, separators)
        return _shown(value, code, from_1904, separators)
    except InvalidOperation:
        # More digits than Decimal has.
        return _general(value, separators)


def _shown_plain(value: float, grouping: str, decimals: int, suffix: str, separators: Separators) -> str:
    number = Decimal(f"{value:.{_MAX_DIGITS}g}").scaleb(2 * len(suffix))
    return _with_separators(f"{_rounded(number, decimals):{grouping}f}{suffix}", separators)


def _with_separators(number: str, separators: Separators) -> str:
    comma, point = separators
    return number if separators == ENGLISH else number.translate({ord(","): comma, ord("."): point})


def _general(value: float, separators: Separators) -> str:
    return _with_separators(general(value), separators)


def _shown(value: float, code: str, from_1904: bool, separators: Separators) -> str:
    # Sections with @ are for texts.
    sections = [section for section in _sections(code) if ("mark", "@") not in section[1]]
    if not sections:
        return _general(value, separators)
    index = _section_of(value, sections)
    tokens = sections[index][1]
    kinds = {kind for kind, _ in tokens}
    if kinds & {"time", "elapsed", "half"}:
        serial = value + 1462 * from_1904
        return _shown_time(serial, tokens) if 0 <= serial < _LAST_DATE else _general(value, separators)
    number = Decimal(f"{abs(value):.{_MAX_DIGITS}g}")
    if "general" in kinds:
        shown = _general(float(number), separators)
        text = "".join(shown if kind == "general" else text for kind, text in tokens)
    elif ("mark", "/") in tokens and "digit" in kinds:
        text = _shown_fraction(number, tokens)
    else:
        text = _shown_decimal(number, tokens, separators)
    # The second of sections without conditions writes its own sign, if any. A literal sign is not doubled.
    has_conditions = any(condition for condition, _ in sections)
    needs_sign = index == 0 or "general" in kinds or has_conditions
    has_sign = has_conditions and any(kind == "text" and text[:1] in "-(" for kind, text in tokens)
    return "-" * (value < 0 and needs_sign and not has_sign) + _SPACES.sub(" ", text).strip()


def shown_text(value: str, code: str) -> str:
    """The text in the format of that code, which may add words to it."""
    if "@" not in code or code == "@":
        return value
    _, tokens = _sections(code)[-1]
    if ("mark", "@") not in tokens:
        return value
    return "".join(value if token == ("mark", "@") else token[1] for token in tokens)


def general(value: float) -> str:
    """The number in the format General, integers with all digits."""
    number = Decimal(f"{value:.{_MAX_DIGITS}g}")
    if number == number.to_integral_value() and abs(number) < Decimal(10) ** 20:
        return f"{number + 0:.0f}"
    if Decimal("0.0001") <= abs(number) < Decimal(10) ** 11:
        return f"{Decimal(f'{value:.10g}').normalize():f}"
    mantissa, _, exponent = f"{value:.5e}".partition("e")
    return f"{mantissa.rstrip('0').rstrip('.')}E{exponent}"


@lru_cache(1000)
def is_percentage(code: str) -> bool:
    """Whether the format shows numbers as percentages. Parts of it that show no number may differ."""
    of_numbers = [
        tokens for _, tokens in _sections(code) if {"digit", "general"} & {kind for kind, _ in tokens}
    ]
    return bool(of_numbers) and all(("mark", "%") in tokens for tokens in of_numbers)


@lru_cache(1000)
def _plain(code: str) -> tuple[str, int, str] | None:
    """(grouping, decimals, suffix) of the common formats, such as #,##0.00, which need no more."""
    match = re.fullmatch(r"(#,##)?0(?:\.(0+))?(%?)", code)
    return ("," if match[1] else "", len(match[2] or ""), match[3]) if match else None


@lru_cache(1000)
def _sections(code: str) -> list[_Section]:
    """(condition, tokens) of each section."""
    texts, position = list[str](), 0
    while position <= len(code) and len(texts) < 4:
        section = _SECTIONS.match(code, position)
        texts.append(section[0] if section else "")
        position += len(texts[-1]) + 1
    return [_tokens_of(text) for text in texts]


def _tokens_of(section: str) -> _Section:
    condition, tokens = None, list[_Token]()
    for token in _TOKEN.finditer(section):
        kind, text = token.lastgroup, token[token.lastgroup or 0]
        if kind == "bracket":
            if compared := _CONDITION.fullmatch(text):
                condition = (compared[1], Decimal(compared[2]))
            elif text.startswith("$"):
                tokens.append(("text", text[1:].partition("-")[0]))
            elif re.fullmatch(r"h+|m+|s+", text, re.IGNORECASE):
                tokens.append(("elapsed", text.lower()))
        elif kind in ("quoted", "escaped", "other"):
            tokens.append(("text", text))
        elif kind:
            tokens.append((kind, text if kind in ("half", "exponent") else text.lower()))
        else:
            # The width of a character, or a fill.
            tokens.append(("text", " "))
    return condition, tokens


def _section_of(value: float, sections: Sequence[_Section]) -> int:
    """The index of the section for a value: by its condition, else by its sign."""
    if any(condition for condition, _ in sections):
        number = Decimal(f"{value:.{_MAX_DIGITS}g}")
        for index, (condition, _) in enumerate(sections):
            if condition is None or _COMPARED[condition[0]](number, condition[1]):
                if condition is None and index == 0 and len(sections) > 1 and value < 0:
                    continue
                return index
        return len(sections) - 1
    if value < 0 and len(sections) > 1:
        return 1
    return 2 if value == 0 and len(sections) > 2 else 0


def _shown_decimal(number: Decimal, tokens: list[_Token], separators: Separators) -> str:
    # A comma that does not follow a digit is a literal.
    tokens = [
        ("text", ",") if token == ("mark", ",") and before not in ("digit", "mark") else token
        for token, (before, _) in zip(tokens, [("", ""), *tokens], strict=False)
    ]
    digits = [index for index, (kind, _) in enumerate(tokens) if kind == "digit"]
    number *= Decimal(100) ** tokens.count(("mark", "%"))
    if not digits:
        return "".join("" if token == ("mark", ",") else token[1] for token in tokens)
    exponent_at = next((index for index, (kind, _) in enumerate(tokens) if kind == "exponent"), len(tokens))
    point_at = tokens.index(("mark", "."), 0, exponent_at) if ("mark", ".") in tokens[:exponent_at] else None
    whole_end = exponent_at if point_at is None else point_at
    # Commas behind the last digit divide by a thousand, others group.
    last = max((index for index in digits if index < exponent_at), default=-1)
    commas = [index for index, token in enumerate(tokens) if token == ("mark", ",")]
    after = [index for index in commas if index > last or (index < whole_end and not any(
        index < digit < whole_end for digit in digits))]  # fmt: skip
    grouped = any(digits[0] < index and index not in after for index in commas)
    number /= Decimal(1000) ** len(after)
    decimals = sum(whole_end < index < exponent_at for index in digits)
    power = 0
    if exponent_at < len(tokens):
        width = sum(index < whole_end for index in digits) or 1
        power = number.adjusted() // width * width if number else 0
        number = _rounded(number.scaleb(-power), decimals)
        if number.adjusted() >= width:
            power += width
            number = number.scaleb(-width)
    whole, _, fraction = f"{_rounded(number, decimals):f}".partition(".")
    comma, point = separators
    parts = _filled(tokens[:whole_end], whole.lstrip("0"), comma if grouped else "")
    if decimals:
        parts += point + _fraction_digits(tokens[whole_end + 1 : exponent_at], fraction)
    elif point_at is not None:
        parts += point + "".join(text for kind, text in tokens[point_at + 1 : exponent_at] if kind == "text")
    if exponent_at < len(tokens):
        sign = tokens[exponent_at][1]
        parts += sign[0] + ("-" if power < 0 else sign[1].replace("-", ""))
        parts += _filled(tokens[exponent_at + 1 :], str(abs(power)).lstrip("0"), "")
    return re.sub(rf"(?<=\d)\{point}(?!\d)" if decimals else rf"\{point}$", "", parts)


def _rounded(number: Decimal, decimals: int) -> Decimal:
    return number.quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP)


def _filled(tokens: list[_Token], digits: str, comma: str) -> str:
    """The tokens with the digits of a whole number in place of theirs; its first has all that remain.
    `comma`: the separator between thousands, if any."""
    places = [index for index, (kind, _) in enumerate(tokens) if kind == "digit"]
    made = [("" if token == ("mark", ",") else token[1]) for token in tokens]
    written = 0
    for index in reversed(places):
        taken = digits[-1:] or {"0": "0", "?": " "}.get(tokens[index][1], "")
        remaining = digits[:-1] if index != places[0] else ""
        text = ""
        for digit in reversed(taken if index != places[0] or not digits else digits):
            text = digit + (comma if written and written % 3 == 0 and digit != " " else "") + text
            written += 1
        made[index], digits = text, remaining
    return "".join(made) + digits


def _fraction_digits(tokens: list[_Token], digits: str) -> str:
    made, position = "", 0
    for kind, text in tokens:
        if kind != "digit":
            made += "" if text == "," else text
            continue
        is_zero = not digits[position:].strip("0")
        made += {"#": "", "?": " "}.get(text, "0") if is_zero else digits[position]
        position += 1
    return made


def _shown_fraction(number: Decimal, tokens: list[_Token]) -> str:
    slash = tokens.index(("mark", "/"))
    digits = [index for index, (kind, _) in enumerate(tokens) if kind == "digit"]
    # The numerator is the run of digits before the slash. Digits before it are the whole number's.
    start = slash
    while start and tokens[start - 1][0] == "digit":
        start -= 1
    has_whole = any(index < start for index in digits)
    fixed = re.match(r"[\d]+", "".join(text for _, text in tokens[slash + 1 :]))
    whole, rest = divmod(number, 1) if has_whole else (Decimal(0), number)
    if fixed and int(fixed[0]):
        denominator = int(fixed[0])
        part = Fraction(int(_rounded(rest * denominator, 0)), 1)
        numerator = int(part)
    else:
        size = sum(index > slash for index in digits) or 1
        part = Fraction(rest).limit_denominator(10 ** min(size, 7) - 1)
        numerator, denominator = part.numerator, part.denominator
    if has_whole and numerator == denominator:
        whole, numerator = whole + 1, 0
    if has_whole and not numerator:
        return f"{whole}"
    return f"{whole} {numerator}/{denominator}" if whole else f"{numerator}/{denominator}"


def _shown_time(serial: float, tokens: list[_Token]) -> str:
    units = _units(tokens)
    seconds = round(serial * 86_400)
    if units & {"y", "M", "d", "b", "e"}:
        # Excel counts a 29 February 1900.
        day = date(1899, 12, 30 if serial >= 60 else 31) + timedelta(days=seconds // 86_400)
        if units <= {"y", "b", "e"}:
            return f"{day:%Y}"
        shown = f"{day:%Y-%m}" if "y" in units and units <= {"y", "M", "b", "e"} else day.isoformat()
        clock = f" {seconds // 3600 % 24:02d}:{seconds // 60 % 60:02d}" if units & {"h", "s"} else ""
        return shown + clock + (f":{seconds % 60:02d}" if "s" in units else "")
    return _clock(serial, seconds, tokens)


def _units(tokens: list[_Token]) -> set[str]:
    """The first letters of a format's units; M for months, m for minutes."""
    letters = [text[0] for kind, text in tokens if kind in ("time", "elapsed")]
    for index, letter in enumerate(letters):
        if (
            letter == "m"
            and "h" not in letters[max(0, index - 1) : index]
            and letters[index + 1 : index + 2] != ["s"]
        ):
            letters[index] = "M"
    if any(kind == "elapsed" for kind, _ in tokens):
        letters = ["m" if letter == "M" else letter for letter in letters]
    return set(letters) | ({"h"} if any(kind == "half" for kind, _ in tokens) else set())


def _clock(serial: float, seconds: int, tokens: list[_Token]) -> str:
    """A time, or with units in brackets a duration."""
    has_half = any(kind == "half" for kind, _ in tokens)
    decimals = sum(kind == "digit" for kind, _ in tokens)
    if decimals:
        seconds = int(serial * 86_400 + 1e-6)
    hours = seconds // 3600 % 24
    values = {"h": (hours + 11) % 12 + 1 if has_half else hours, "m": seconds // 60 % 60, "s": seconds % 60}
    totals = {"h": seconds // 3600, "m": seconds // 60, "s": seconds}
    made = ""
    for kind, text in tokens:
        if kind in ("time", "elapsed"):
            number = (totals if kind == "elapsed" else values).get(text[0], 0)
            made += f"{number:0{min(len(text), 2)}d}"
        elif kind == "half":
            made += text[: text.index("/")] if hours < 12 else text[text.index("/") + 1 :]
        elif kind == "digit":
            made += f"{serial * 86_400 % 1:.{decimals}f}"[2 : 2 + decimals] if made.endswith(".") else ""
        else:
            made += text
    return made.strip()
