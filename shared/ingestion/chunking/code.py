"""Code in programming languages: what of it should stay whole. It is read apart (parsers/code.py), since what
can be written of strangers' making to break a parser breaks that process alone.
"""

import json
from dataclasses import dataclass

from shared.errors import InvalidRequest, UnreadableDocument
from shared.ingestion.chunking.segments import PARAGRAPH
from shared.ingestion.sandbox import parse_in_subprocess

LANGUAGES = (
    "bash", "c", "cpp", "csharp", "css", "go", "html", "java", "javascript", "json", "php", "python", "ruby",
    "rust", "tsx", "typescript",
)  # fmt: skip
_ALSO = {
    "c#": "csharp", "c++": "cpp", "c_sharp": "csharp", "cs": "csharp", "golang": "go", "js": "javascript",
    "jsx": "javascript", "py": "python", "rb": "ruby", "rs": "rust", "sh": "bash", "shell": "bash",
    "ts": "typescript",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Code:
    """Of a text, in characters: where it may be cut within long lines; and what should stay whole if it fits,
    from its first comment to the end of its last line, in any order, some within others."""

    cuts: list[int]
    wholes: list[tuple[int, int]]


def language_of(value: object) -> str:
    """The language that somebody means. Raises InvalidRequest (unsupported_language) for another or none."""
    name = value.strip().lower() if isinstance(value, str) else ""
    name = _ALSO.get(name, name)
    if name not in LANGUAGES:
        listed = ", ".join(LANGUAGES)
        message = f"Code is split by its language, and metadata.language names none of {listed}."
        raise InvalidRequest(message, code="unsupported_language")
    return name


def code(text: str, language: str) -> Code:
    """Where code in one of LANGUAGES may be cut, and where rather not."""
    try:
        ((_, reply),) = parse_in_subprocess("code", f"{language}\n{text}".encode())["parts"]
    except UnreadableDocument:
        # Brackets in brackets, a million deep.
        reply = '{"cuts": [], "wholes": [], "broken": true}'
    parsed = json.loads(reply)
    wholes = [(start, end) for start, end in parsed["wholes"]]
    if parsed["broken"]:
        # What the grammar does not see: what stands between empty lines.
        wholes += [paragraph.span() for paragraph in PARAGRAPH.finditer(text)]
    return Code(parsed["cuts"], wholes)
