"""A signed payload comes back as it was signed, or not at all."""

import pytest

from shared.access.token_signer import BadSignature, Signer

SIGNER = Signer("a secret of at least thirty-two characters", "https://x.example/auth/v1", "authenticated")


def test_the_value_comes_back(subtests: pytest.Subtests):
    cases: list[object] = [None, [], {"a": ["é", 1, None]}, "x" * 10_000]
    for value in cases:
        with subtests.test(value=value):
            assert SIGNER.verified("a purpose", SIGNER.sign("a purpose", value)) == value


def test_a_signature_is_for_one_purpose_and_by_one_key():
    payload = SIGNER.sign("a purpose", ["value"])
    other = Signer("another secret of thirty-two characters", "https://x.example/auth/v1", "authenticated")
    for signer, purpose in ((SIGNER, "another"), (SIGNER, ""), (other, "a purpose")):
        with pytest.raises(BadSignature):
            signer.verified(purpose, payload)


def test_an_unsigned_payload_is_rejected(subtests: pytest.Subtests):
    token = SIGNER.token(sub="user")
    malformed = ("", ".", "..", "x", "x.y", "é.é", "a.b.c", "[]." + "A" * 43, "=.=", " . ", "\ud800.x", token)
    for payload in malformed:
        with subtests.test(payload=payload), pytest.raises(BadSignature):
            SIGNER.verified("a purpose", payload)
