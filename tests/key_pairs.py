"""Key pairs, made anew for each run: private JWKs, as `supabase gen signing-key` prints them, and TLS."""

import json
import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jose import jwk

from local import access_tokens


def es256(kid: str, curve: ec.EllipticCurve | None = None) -> dict[str, Any]:
    return private(ec.generate_private_key(curve or ec.SECP256R1()), "ES256", kid)


def rs256(kid: str, bits: int = 2048) -> dict[str, Any]:
    return private(rsa.generate_private_key(65537, bits), "RS256", kid)


def private(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey, algorithm: str, kid: str) -> dict[str, Any]:
    numbers: dict[str, Any] = jwk.construct(key, algorithm).to_dict()
    return {**numbers, "kid": kid, "use": "sig", "key_ops": ["sign", "verify"], "ext": True}


def public(key: dict[str, Any]) -> dict[str, Any]:
    """Its public half, as a JWKS lists it."""
    entry: dict[str, Any] = access_tokens.public_jwks(key)["keys"][0]
    return entry


def pem(key: dict[str, Any]) -> bytes:
    """Its public half, as `openssl` prints it."""
    prepared = jwk.construct(public(key), key["alg"]).prepared_key
    spelled: bytes = prepared.public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return spelled


def shared_secrets_of(key: dict[str, Any]) -> dict[str, bytes]:
    """Every form of the public key that an HS256 token could be signed with by who hopes for confusion."""
    entry = public(key)
    prepared = jwk.construct(entry, key["alg"]).prepared_key
    der = prepared.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    forms = {
        "its PEM": pem(key),
        "its PEM without the last line break": pem(key).rstrip(),
        "its DER": der,
        "its JWK": json.dumps(entry).encode(),
        "its JWK without spaces": json.dumps(entry, separators=(",", ":")).encode(),
        "its JWKS": json.dumps({"keys": [entry]}).encode(),
        "its JWKS without spaces": json.dumps({"keys": [entry]}, separators=(",", ":")).encode(),
        "its key id": key["kid"].encode(),
        "nothing": b"",
    }
    for name in ("x", "y", "n"):
        if name in entry:
            forms[f"its {name}"] = entry[name].encode()
    if key["kty"] == "EC":
        point = (serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
        forms["its point"] = prepared.public_bytes(*point)
    return forms


def tls_contexts(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Those of a server at 127.0.0.1, with a certificate of its own, and of a client that trusts it."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem_of_key = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file = folder / "server.pem"
    file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM) + pem_of_key)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(file)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.load_verify_locations(file)
    return server, client
