"""Web page: its main content, and the reasons for which it is no document."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shared.clients.download import Download
from shared.errors import UnreadableDocument
from shared.ingestion.parser_sandbox import parse_in_subprocess
from shared.ingestion.parsers.charsets import by_content_type
from shared.text.normalize import clean_line

PAGE_TYPES = ("text/html", "application/xhtml+xml")
# What an address sends instead of a document.
FAULTS = {
    "not_found": "a page which says that it does not exist. Check the address.",
    "needs_javascript": "a page without text, which scripts would load. Open it, and upload its text.",
    "login": "a page for logging in. Log in yourself, and upload the page.",
    "consent": "a question for your consent. Open the page, and upload it.",
    "unavailable": "a page which says that it is not available. Try again later, or upload it.",
    "redirect": "a page that only leads to another one. Send the address of that page.",
    "no_text": "a page without text. Check the address.",
}


@dataclass(frozen=True, slots=True)
class WebPage:
    """`text`: the main content as Markdown. `canonical`: the address that the page calls its own. `robots`:
    its rules for robots. `fault`: the reason of FAULTS for which it has no content of its own."""

    text: str
    title: str | None
    canonical: str | None
    robots: Sequence[str]
    fault: str | None


def is_page(download: Download) -> bool:
    media_type = (download.content_type or "").partition(";")[0].strip().lower()
    return media_type in PAGE_TYPES


def read_page(download: Download) -> WebPage:
    """Raises UnreadableDocument."""
    parsed = parse_web("page", by_content_type(download.data, download.content_type))
    title = clean_line(parsed.pop("title") or "")[:512] or None
    return WebPage(title=title, **parsed)


def require_content(download: Download) -> None:
    """Raises UnreadableDocument for a page without content of its own."""
    if is_page(download) and (fault := read_page(download).fault):
        raise UnreadableDocument(f"The address sends {FAULTS[fault]}", code="url_refused")


def parse_web(kind: str, data: bytes) -> dict[str, Any]:
    """The JSON of a parser of web_pages.py. Raises UnreadableDocument."""
    ((_, text),) = parse_in_subprocess(kind, data).parts
    parsed: dict[str, Any] = json.loads(text)
    return parsed


# Rules of X-Robots-Tag that look like the name of a robot.
RULES_WITH_VALUES = {"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"}


def forbids_index(rules: Sequence[str], robot: str) -> bool:
    """Whether values of the header X-Robots-Tag, or of a page's elements for robots, forbid the index to this
    robot."""
    for line in rules:
        name, colon, rest = line.partition(":")
        name = name.strip().lower()
        # Rules of another robot. Some rules have a value, and rules before them a comma.
        if colon and name != robot.lower() and "," not in name and name not in RULES_WITH_VALUES:
            continue
        own = rest if colon and name == robot.lower() else line
        if {"noindex", "none"} & {rule.strip().lower() for rule in own.split(",")}:
            return True
    return False
