"""Identifiers in queries: INC-4821, a/b, v1.2.3."""

import re

# One word with a digit in it, or with what joins the parts of paths, addresses and names.
_IDENTIFIER = re.compile(r"(?=.*[\d./:@#_])\w[\w./:@#&+-]*[\w+#]")


def is_identifier(text: str) -> bool:
    """Whether the text is one name of something (INC-4821, a/b, v1.2.3, a mail address), not a question."""
    return len(text) <= 200 and _IDENTIFIER.fullmatch(text) is not None
