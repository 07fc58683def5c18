"""What is sealed here comes back as it was said, or not at all."""

import pytest

from shared.access.signed_payload import BadSignature, dumps, loads
from shared.access.token_signer import Signer

SIGNER = Signer("a secret of at least thirty-two characters", "https://x.example/auth/v1", "authenticated")


def test_a_sealed_payload_is_read_back(subtests: pytest.Subtests):
    cases: list[object] = [None, [], {"a": ["é", 1, None]}, "x" * 10_000]
    for said in cases:
        with subtests.test(said=said):
            assert loads(SIGNER, "a purpose", dumps(SIGNER, "a purpose", said)) == said


def test_a_seal_is_valid_for_one_purpose_and_one_key():
    carried = dumps(SIGNER, "a purpose", ["said"])
    other = Signer("another secret of thirty-two characters", "https://x.example/auth/v1", "authenticated")
    for signer, purpose in ((SIGNER, "another"), (SIGNER, ""), (other, "a purpose")):
        with pytest.raises(BadSignature):
            loads(signer, purpose, carried)


def test_an_unsealed_payload_is_invalid(subtests: pytest.Subtests):
    for carried in ("", ".", "x", "x.y", "é.é", "a.b.c", "[]." + "A" * 43, "=.=", " . "):
        with subtests.test(carried=carried), pytest.raises(BadSignature):
            loads(SIGNER, "a purpose", carried)
