"""Authorization attacks and the checks of their responses."""

import base64
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import httpx

from shared.access.token_signer import Signer
from verify.actors import SCOPES, Actors, unsigned, with_claims_of
from verify.request_generator import Request
from verify.row_digest import Extent
from verify.victim_objects import Objects

# Shorter texts occur in responses by chance.
SHORTEST_ECHO = 8
INVITED = "an invited user"
REFUSALS = frozenset({401, 403, 404})
# Codes of other statuses that refuse: the caller does not hold the lease.
REFUSAL_CODES = ("lease_lost",)


@dataclass(frozen=True)
class Attack:
    """A credential that has no right to what the request names: the value of `header`.

    `statuses` refuse it; with `may_succeed`, a success that shows and changes nothing of the victim's is
    fine too. `victim`: whose objects the request names, a field of Objects. `optional`: see Generator.
    """

    name: str
    credential: str | None
    statuses: frozenset[int] = frozenset({401})
    may_succeed: bool = False
    victim: str = "shared"
    optional: bool = True
    header: str = "Authorization"

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.credential is None else {self.header: self.credential}


@dataclass(frozen=True)
class Group:
    """Attacks by callers who must see none of these markers and ids, and change no row of the extent."""

    attacks: tuple[Attack, ...]
    markers: tuple[str, ...]
    ids: frozenset[str]
    extent: Extent


@dataclass(frozen=True)
class Credentials:
    """The victim's API keys, created once for a sweep."""

    revoked: str
    expired: str
    bound: str
    foreign: str

    @classmethod
    def of(cls, actors: Actors, other_collection_id: str) -> "Credentials":
        return cls(
            actors.key(actors.admin, SCOPES, column="revoked_at"),
            actors.key(actors.admin, SCOPES, column="expires_at"),
            actors.key(actors.admin, SCOPES, collection_id=other_collection_id),
            actors.key(actors.foreign_admin, SCOPES),
        )


def bad_tokens(actors: Actors) -> list[Attack]:
    """Tokens that neither a function nor PostgREST accepts, each made for the victim org's admin."""
    token, foreign_token = actors.token(actors.admin), actors.token(actors.foreign_admin)
    deployment = actors.deployment
    another = Signer(secrets.token_urlsafe(40), deployment.token_issuer, deployment.audience)
    tokens = {
        "a malformed token": "a.b",
        "an expired token": actors.token(actors.admin, -120),
        "a token signed with another key": another.token(60, sub=actors.admin.id),
        "a token without a signature": unsigned(token),
        "a token changed after signing": with_claims_of(foreign_token, token),
        "a token of another audience": actors.token(actors.admin, aud="another"),
        "a token not valid yet": actors.token(actors.admin, nbf=4_000_000_000),
    }
    return [Attack(name, f"Bearer {text}") for name, text in tokens.items()]


def another_issuer(actors: Actors) -> str:
    """A token that PostgREST accepts, which knows no issuer, and SQL refuses."""
    return actors.token(actors.admin, iss="https://another.example")


def _third_party_tokens(actors: Actors) -> dict[str, str]:
    """Tokens as of each third-party issuer of rag.settings, with the id of the victim org's admin."""
    issuers = actors.sql("select key, value from rag.settings, jsonb_each_text(third_party_issuers)")
    return {
        f"the admin's id as a subject of {issuer}": actors.token(
            actors.admin, iss=issuer, aud=audience or actors.deployment.audience
        )
        for issuer, audience in issuers
    }


def on_routes(actors: Actors, objects: Objects, credentials: Credentials) -> Iterable[Group]:
    unauthenticated = [
        Attack("no credential", None),
        *bad_tokens(actors),
        Attack("the anon key", f"Bearer {actors.deployment.anon_key}"),
        Attack("a token of the service role", f"Bearer {actors.token(actors.admin, role='service_role')}"),
        Attack("a token of another issuer", f"Bearer {another_issuer(actors)}"),
        Attack("a token in another scheme", f"Basic {actors.token(actors.admin)}"),
        Attack("an unknown API key", f"Bearer mn_live_{secrets.token_urlsafe(32)}"),
        Attack("a revoked API key", f"Bearer {credentials.revoked}"),
        Attack("an expired API key", f"Bearer {credentials.expired}"),
        Attack("a revoked API key in X-Api-Key", credentials.revoked, header="X-Api-Key"),
        Attack("a key of another org in X-Api-Key", credentials.foreign, REFUSALS, True, header="X-Api-Key"),
    ]
    yield _outsiders(actors, objects, unauthenticated, {"a key of another org": credentials.foreign})
    yield _colleagues(actors, objects)
    yield _other_group(actors, objects)
    yield _bound(actors, objects, {"a key bound to another collection": credentials.bound})


def on_sql_functions(actors: Actors, objects: Objects) -> Iterable[Group]:
    service = actors.token(actors.admin, role="service_role")
    no_scope = actors.key_token(actors.admin, [])
    unauthenticated = [
        Attack("no token", None),
        *bad_tokens(actors),
        Attack("the anon key", f"Bearer {actors.deployment.anon_key}"),
        Attack("a token of another issuer", f"Bearer {another_issuer(actors)}", REFUSALS, may_succeed=True),
        Attack("a token of the service role", f"Bearer {service}", frozenset({403})),
        Attack("a key token without a scope", f"Bearer {no_scope}", REFUSALS, may_succeed=True),
    ]
    outsider = actors.foreign_admin
    foreign = {
        **_third_party_tokens(actors),
        "a key token of another org": actors.key_token(outsider, SCOPES),
        "a claim of the victim's collection": actors.key_token(
            outsider, SCOPES, collection=objects.shared["collection_id"]
        ),
        "a claim of a job's lease": actors.key_token(outsider, SCOPES, lease=objects.shared["job_lease"]),
        "a claim of an extraction's lease": actors.key_token(
            outsider, SCOPES, lease=objects.shared["extraction_lease"]
        ),
    }
    yield _outsiders(actors, objects, unauthenticated, foreign)
    yield _colleagues(actors, objects)
    yield _other_group(actors, objects)
    owners = {
        "a key bound to another collection": actors.admin,
        "the member's own key, bound to another collection": actors.member,
    }
    bound = {
        name: actors.key_token(owner, SCOPES, collection=objects.other_collection_id)
        for name, owner in owners.items()
    }
    yield _bound(actors, objects, bound)


def _outsiders(
    actors: Actors, objects: Objects, unauthenticated: list[Attack], foreign: dict[str, str]
) -> Group:
    claim = {"org": actors.org_id, "scopes": list(SCOPES), "key": objects.shared["key_id"]}
    tokens = {
        "a member of another org": actors.token(actors.foreign_member),
        "an admin of another org": actors.token(actors.foreign_admin),
        "a user without an org": actors.token(actors.stranger),
        INVITED: actors.token(actors.invited),
        "a claim of the victim's org": actors.token(actors.foreign_admin, rag=claim),
        **foreign,
    }
    markers = (actors.marker, actors.private_marker, actors.other_marker, actors.org_marker)
    attacks = [*unauthenticated, *_users(tokens)]
    return Group(tuple(attacks), markers, objects.ids, Extent())


def _colleagues(actors: Actors, objects: Objects) -> Group:
    """Another member of the victim org, who requests the private rows of the member."""
    attacks = _users({"another member": actors.token(actors.colleague)}, "private")
    return Group(
        tuple(attacks), (actors.private_marker,), objects.private_ids, Extent(owner_id=actors.member.id)
    )


def _other_group(actors: Actors, objects: Objects) -> Group:
    """The same member, who is in no group that may view the restricted collection."""
    attacks = _users({"a member of no group": actors.token(actors.colleague)}, "restricted")
    ids = frozenset(str(objects.restricted[name]) for name in ("collection_id", "document_id", "chunk_id"))
    extent = Extent(collection_id=objects.other_collection_id)
    return Group(tuple(attacks), (actors.other_marker,), ids, extent)


def _bound(actors: Actors, objects: Objects, credentials: dict[str, str]) -> Group:
    """Keys of the victim org that belong to another collection. The rows of one user alone, such as sessions,
    are hidden from the admin's key in any case: only the owner's shows whether the collection limits it."""
    id_names = ("collection_id", "document_id", "chunk_id")
    ids = {str(values[name]) for values in (objects.shared, objects.private) for name in id_names}
    # All objects of that collection are the admin's: a response with other users is about the whole org.
    ids |= {actors.member.id, actors.colleague.id}
    attacks = _users(credentials)
    extent = Extent(outside_of_collection=objects.other_collection_id)
    return Group(tuple(attacks), (actors.marker, actors.private_marker), frozenset(ids), extent)


def _users(tokens: dict[str, str], victim: str = "shared") -> list[Attack]:
    """Each with the victim's ids in all fields whose name fits, and once more in required fields only."""
    return [
        Attack(
            f"{name}{'' if optional else ', required fields only'}",
            f"Bearer {token}",
            REFUSALS,
            True,
            victim,
            optional,
        )
        for name, token in tokens.items()
        for optional in (True, False)
    ]


def leak(response: httpx.Response, request: Request, markers: Iterable[str], ids: Iterable[str]) -> str:
    """The victim's first marker or id that the response has and the request has not; empty for none."""
    text = response.text + " ".join(response.headers.values())
    for request_text in sorted(request.texts(), key=len, reverse=True):
        if len(request_text) >= SHORTEST_ECHO:
            text = text.replace(request_text, "")
    for marker in markers:
        if any(form in text for form in _forms(marker)):
            return marker
    return next((secret for secret in ids if secret in text), "")


def _forms(marker: str) -> Iterator[str]:
    """The marker, and its three forms within base64, which depend on its offset in the bytes."""
    yield marker
    for place in range(3):
        encoded = base64.b64encode(b"\0" * place + marker.encode()).decode()
        # The first and last letters also encode a part of the bytes beside the marker.
        yield encoded[4:-4]


def failure_reason(
    attack: Attack, group: Group, request: Request, response: httpx.Response, *, is_refused: bool
) -> str:
    """The reason that the response is no refusal; empty for a refusal. `is_refused`: for any status."""
    is_refused |= response.status_code in attack.statuses or (
        response.is_error and any(code in response.text for code in REFUSAL_CODES)
    )
    # A caller who may not see an object gets no success at its address.
    may_succeed = attack.may_succeed and not any(object_id in request.path for object_id in group.ids)
    if not is_refused and not (may_succeed and response.is_success):
        return f"the status is {response.status_code}: {response.text[:200]}"
    output = leak(response, request, group.markers, group.ids)
    return f"the response shows {output}" if output else ""
