"""The attacks, and what each response and the victim's rows may show after one."""

import base64
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import httpx

from shared.sign import Signer
from verify import examples
from verify.actors import SCOPES, Cast, unsigned, with_claims_of
from verify.deployment import ISSUER_PATH
from verify.objects import Objects
from verify.requests import Request
from verify.state import Extent

# Shorter texts occur in responses by chance.
SHORTEST_ECHO = 8
REFUSALS = frozenset({401, 403, 404})
# Codes of other statuses that refuse: the caller does not hold the lease.
REFUSAL_CODES = ("lease_lost",)


@dataclass(frozen=True)
class Attack:
    """A credential that has no right to what the request names. `authorization` is the header's value.

    `statuses` refuse it; with `may_succeed`, a success that shows and changes nothing of the victim's is
    fine too. `privately`: the request names the member's private objects. `optional`: see Generator.
    """

    name: str
    authorization: str | None
    statuses: frozenset[int] = frozenset({401})
    may_succeed: bool = False
    privately: bool = False
    optional: bool = True

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.authorization is None else {"Authorization": self.authorization}


@dataclass(frozen=True)
class Group:
    """Attacks that may not see the same things: markers, ids, and rows that must stay as they are."""

    attacks: tuple[Attack, ...]
    markers: tuple[str, ...]
    ids: frozenset[str]
    extent: Extent


@dataclass(frozen=True)
class Credentials:
    """Texts of API keys of the victim's, made once for a sweep."""

    revoked: str
    expired: str
    bound: str
    rival: str
    # By the owner and the one scope.
    single: Mapping[tuple[str, str], str]

    @classmethod
    def of(cls, cast: Cast, other_collection_id: str) -> "Credentials":
        return cls(
            cast.key(cast.admin, SCOPES, column="revoked_at"),
            cast.key(cast.admin, SCOPES, column="expires_at"),
            cast.key(cast.admin, SCOPES, collection_id=other_collection_id),
            cast.key(cast.rival_admin, SCOPES),
            {
                (owner.id, scope): cast.key(owner, [scope])
                for owner in (cast.member, cast.admin)
                for scope in SCOPES
            },
        )


def bad_tokens(cast: Cast) -> list[Attack]:
    """Tokens that neither a function nor PostgREST accepts, each made for the victim org's admin."""
    token, rival = cast.token(cast.admin), cast.token(cast.rival_admin)
    deployment = cast.deployment
    another = Signer(secrets.token_urlsafe(40), f"{deployment.project_url}{ISSUER_PATH}", deployment.audience)
    tokens = {
        "a malformed token": "a.b",
        "an expired token": cast.token(cast.admin, -120),
        "a token signed with another key": another.token(60, sub=cast.admin.id),
        "a token without a signature": unsigned(token),
        "a token changed after signing": with_claims_of(rival, token),
        "a token of another audience": cast.token(cast.admin, aud="another"),
        "a token not valid yet": cast.token(cast.admin, nbf=4_000_000_000),
    }
    return [Attack(name, f"Bearer {text}") for name, text in tokens.items()]


def on_routes(cast: Cast, objects: Objects, credentials: Credentials) -> Iterable[Group]:
    unauthenticated = [
        Attack("no credential", None),
        *bad_tokens(cast),
        Attack("the anon key", f"Bearer {cast.deployment.anon_key}"),
        Attack("a token of the service role", f"Bearer {cast.token(cast.admin, role='service_role')}"),
        Attack(
            "a token of another issuer", f"Bearer {cast.token(cast.admin, iss='https://another.example')}"
        ),
        Attack("a token in another scheme", f"Basic {cast.token(cast.admin)}"),
        Attack("an unknown API key", f"Bearer mn_live_{secrets.token_urlsafe(32)}"),
        Attack("a revoked API key", f"Bearer {credentials.revoked}"),
        Attack("an expired API key", f"Bearer {credentials.expired}"),
    ]
    yield _outsiders(cast, objects, unauthenticated, {"a key of another org": credentials.rival})
    yield _fellows(cast, objects)
    yield _bound(cast, objects, credentials.bound)


def on_sql_function(cast: Cast, objects: Objects, function: str) -> Iterable[Group]:
    service = cast.token(cast.admin, role="service_role")
    unauthenticated = [
        Attack("no token", None),
        *bad_tokens(cast),
        Attack("the anon key", f"Bearer {cast.deployment.anon_key}"),
        Attack("a token of the service role", f"Bearer {service}", frozenset({403})),
    ]
    if function not in examples.OPEN_TO_EVERY_SCOPE_IN_SQL:
        token = cast.key_token(cast.admin, [])
        unauthenticated.append(
            Attack("a key token without a scope", f"Bearer {token}", REFUSALS, may_succeed=True)
        )
    rival = cast.rival_admin
    foreign = {
        "a key token of another org": cast.key_token(rival, SCOPES),
        "a claim of the victim's collection": cast.key_token(
            rival, SCOPES, collection=objects.shared["collection_id"]
        ),
        "a claim of a job's lease": cast.key_token(rival, SCOPES, lease=objects.shared["job_lease"]),
        "a claim of a reading's lease": cast.key_token(rival, SCOPES, lease=objects.shared["reading_lease"]),
    }
    yield _outsiders(cast, objects, unauthenticated, foreign)
    yield _fellows(cast, objects)
    yield _bound(cast, objects, cast.key_token(cast.admin, SCOPES, collection=objects.other_collection_id))


def _outsiders(cast: Cast, objects: Objects, unauthenticated: list[Attack], foreign: dict[str, str]) -> Group:
    claim = {"org": cast.org_id, "scopes": list(SCOPES), "key": objects.shared["key_id"]}
    tokens = {
        "a member of another org": cast.token(cast.rival_member),
        "an admin of another org": cast.token(cast.rival_admin),
        "a user without an org": cast.token(cast.stranger),
        "a claim of the victim's org": cast.token(cast.rival_admin, rag=claim),
        **foreign,
    }
    markers = (cast.marker, cast.private_marker, cast.other_marker)
    attacks = [*unauthenticated, *_users(tokens, privately=False)]
    return Group(tuple(attacks), markers, objects.ids, Extent())


def _fellows(cast: Cast, objects: Objects) -> Group:
    """Another member of the victim org at the private rows of the member."""
    attacks = _users({"a fellow member": cast.token(cast.fellow)}, privately=True)
    return Group(tuple(attacks), (cast.private_marker,), objects.private_ids, Extent(owner_id=cast.member.id))


def _bound(cast: Cast, objects: Objects, credential: str) -> Group:
    """A key of the victim org's admin that belongs to another collection."""
    named = ("collection_id", "document_id", "chunk_id")
    ids = {str(values[name]) for values in (objects.shared, objects.private) for name in named}
    attacks = _users({"a key bound to another collection": credential}, privately=False)
    extent = Extent(collection_id=objects.shared["collection_id"])
    return Group(tuple(attacks), (cast.marker, cast.private_marker), frozenset(ids), extent)


def _users(tokens: dict[str, str], *, privately: bool) -> list[Attack]:
    """Each with the victim's ids wherever a name fits, and once more only where one is required."""
    return [
        Attack(
            f"{name}{'' if optional else ', required fields only'}",
            f"Bearer {token}",
            REFUSALS,
            True,
            privately,
            optional,
        )
        for name, token in tokens.items()
        for optional in (True, False)
    ]


def leak(response: httpx.Response, request: Request, markers: Iterable[str], ids: Iterable[str]) -> str:
    """The first marker or id of the victim's that the response shows without the request; empty for none."""
    text = response.text + " ".join(response.headers.values())
    for sent in sorted(request.texts(), key=len, reverse=True):
        if len(sent) >= SHORTEST_ECHO:
            text = text.replace(sent, "")
    for marker in markers:
        if any(form in text for form in _forms(marker)):
            return marker
    return next((secret for secret in ids if secret in text), "")


def _forms(marker: str) -> Iterator[str]:
    """The marker as it is, and inside of bytes in base64: there the letters depend on the place."""
    yield marker
    for place in range(3):
        encoded = base64.b64encode(b"\0" * place + marker.encode()).decode()
        # The first and last letters also encode a part of the bytes beside the marker.
        yield encoded[4:-4]


def fault(
    attack: Attack, group: Group, request: Request, response: httpx.Response, *, is_refused: bool
) -> str:
    """Why the response is not a refusal; empty when it is one. `is_refused`: whatever its status says."""
    is_refused |= response.status_code in attack.statuses or any(
        code in response.text for code in REFUSAL_CODES
    )
    if not is_refused and not (attack.may_succeed and response.is_success):
        return f"the status is {response.status_code}: {response.text[:200]}"
    shown = leak(response, request, group.markers, group.ids)
    return f"the response shows {shown}" if shown else ""
