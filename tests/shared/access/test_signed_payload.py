"""A signed payload comes back as it was signed, or not at all."""

import pytest

from shared.access.signed_payload import BadSignature, dumps, loads
from shared.access.token_signer import Signer

SIGNER = Signer("a secret of at least thirty-two characters", "https://x.example/auth/v1", "authenticated")


def test_the_value_comes_back(subtests: pytest.Subtests):
    cases: list[object] = [None, [], {"a": ["é", 1, None]}, "x" * 10_000]
    for value in cases:
        with subtests.test(value=value):
            assert loads(SIGNER, "a purpose", dumps(SIGNER, "a purpose", value)) == value


def test_a_signature_is_for_one_purpose_and_by_one_key():
    payload = dumps(SIGNER, "a purpose", ["value"])
    other = Signer("another secret of thirty-two characters", "https://x.example/auth/v1", "authenticated")
    for signer, purpose in ((SIGNER, "another"), (SIGNER, ""), (other, "a purpose")):
        with pytest.raises(BadSignature):
            loads(signer, purpose, payload)


def test_an_unsigned_payload_is_rejected(subtests: pytest.Subtests):
    token = SIGNER.token(sub="user")
    malformed = ("", ".", "..", "x", "x.y", "é.é", "a.b.c", "[]." + "A" * 43, "=.=", " . ", "\ud800.x", token)
    for payload in malformed:
        with subtests.test(payload=payload), pytest.raises(BadSignature):
            loads(SIGNER, "a purpose", payload)
