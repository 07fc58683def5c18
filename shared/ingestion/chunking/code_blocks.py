"""Blocks of code that stay in one chunk: functions and classes, and the paragraphs of broken code.

A subprocess parses it (parsers/code_functions.py), since code may crash its parser.
"""

import json

from shared.errors import InvalidRequest, UnreadableDocument
from shared.ingestion.chunking.boundaries import PARAGRAPH, Span
from shared.ingestion.parser_sandbox import parse_in_subprocess

LANGUAGES = (
    "bash", "c", "cpp", "csharp", "css", "go", "html", "java", "javascript", "json", "php", "python", "ruby",
    "rust", "tsx", "typescript",
)  # fmt: skip
_ALSO = {
    "c#": "csharp", "c++": "cpp", "c_sharp": "csharp", "cs": "csharp", "golang": "go", "js": "javascript",
    "jsx": "javascript", "py": "python", "rb": "ruby", "rs": "rust", "sh": "bash", "shell": "bash",
    "ts": "typescript",
}  # fmt: skip


def code_language(value: object) -> str:
    """The language of that name. Raises InvalidRequest (unsupported_language)."""
    name = value.strip().lower() if isinstance(value, str) else ""
    name = _ALSO.get(name, name)
    if name not in LANGUAGES:
        listed = ", ".join(LANGUAGES)
        message = f"To split code, metadata.language must be one of {listed}."
        raise InvalidRequest(message, code="unsupported_language")
    return name


def code_blocks(text: str, language: str) -> tuple[list[int], list[Span]]:
    """Positions within long lines at which they may be divided; and blocks, the spans that should stay in one
    chunk, from the first comment to the end of the last line, in any order, some within others."""
    try:
        ((_, reply),) = parse_in_subprocess("code", f"{language}\n{text}".encode()).parts
    except UnreadableDocument:
        # The parser failed, for example at a million nested brackets.
        reply = '{"cuts": [], "blocks": [], "broken": true}'
    parsed = json.loads(reply)
    blocks = [(start, end) for start, end in parsed["blocks"]]
    if parsed["broken"]:
        # The grammar misses parts of broken code: paragraphs are blocks too.
        blocks += [paragraph.span() for paragraph in PARAGRAPH.finditer(text)]
    return parsed["cuts"], blocks
