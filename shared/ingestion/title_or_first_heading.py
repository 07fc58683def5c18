"""The title of a document: that in its file, or its first heading."""

import re

from shared.text.normalize import clean_line, is_blank

# Kinds whose first heading is the title, unless it is one word, such as "Invoice".
TITLED = {"docx", "html", "json", "markdown", "pdf", "pptx"}
OFFICE = {"docx", "pdf", "pptx"}
# The beginning of a text that is compared with its title.
BEGINNING_CHARACTERS = 20_000
_HEADING = re.compile(r"\s*# +(\S.*)")
_LONG_WORD = re.compile(r"\w{4,}")


def title_or_first_heading(kind: str, title: str, text: str) -> str | None:
    """`title`: that in the file, which the first heading replaces if it is empty or of another file."""
    heading = _HEADING.match(text) if kind in TITLED else None
    if heading and (kind == "markdown" or " " in heading[1].strip()):
        is_own = title and not (kind in OFFICE and _is_of_another_file(title, text[:BEGINNING_CHARACTERS]))
        title = title if is_own else heading[1]
    title = clean_line(title)[:512]
    return None if is_blank(title) else title


def _is_of_another_file(title: str, text: str) -> bool:
    """Whether the text has at most one of several words: the title is that of a template or of a former
    file."""
    words = {*_LONG_WORD.findall(title.casefold())}
    return len(words) > 2 and len(words & {*_LONG_WORD.findall(text.casefold())}) < 2
