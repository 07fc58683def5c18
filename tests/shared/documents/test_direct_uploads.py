"""Names of objects, whatever a file is called."""

import re

from hypothesis import given
from hypothesis import strategies as st

from shared.documents.direct_uploads import safe_name


def test_a_file_name_becomes_safe_for_every_store():
    cases: list[tuple[str, str]] = [
        ("kiln.pdf", "kiln.pdf"), ("Kiln 2 (final).PDF", "Kiln_2_final_.PDF"), ("é.pdf", "_.pdf"),
        ("", "file"), ("..", "file"), (".env", "env"), ("-rf", "rf"), ("a..b", "a..b"),
        ("x" * 200 + ".pdf", "x" * 96 + ".pdf"), ("x." + "y" * 200, "x." + "y" * 98),
    ]  # fmt: skip
    assert [(name, safe_name(name)) for name, _ in cases] == cases


@given(st.text(max_size=600))
def test_every_file_name_becomes_valid_for_the_table(name: str):
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}", safe_name(name))
