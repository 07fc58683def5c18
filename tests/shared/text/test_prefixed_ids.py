"""Ids as clients write them: without a caller."""

import pytest

from shared.errors import NotFound
from shared.text.prefixed_ids import id_of

ID = "5a0e4f1c-9d0b-4b5e-8a53-0c7d1e6f2b94"


def test_an_id_is_accepted_with_and_without_its_prefix_in_any_case():
    cases: list[tuple[str, str]] = [
        ("collection", "col"), ("document", "doc"), ("workspace", "ws"), ("org", "org"), ("chunk", "chnk"),
    ]  # fmt: skip
    for noun, prefix in cases:
        for written in (ID, f"{prefix}_{ID}", ID.upper(), f"{prefix}_{ID}".upper(), ID.replace("-", "")):
            assert id_of(written, noun) == ID


def test_a_malformed_id_matches_nothing():
    ids = ("", "x", "ws_", "ws_123", f"doc_{ID}", f"ws_ws_{ID}", f"{ID}0", f" {ID} x", "\0", "ws_é" * 99)
    for written in ids:
        with pytest.raises(NotFound) as missing:
            id_of(written, "workspace")
        error = missing.value
        assert (error.code, error.details) == ("workspace_not_found", {"workspace_id": written})
