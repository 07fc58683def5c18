"""Attacks and positive controls on one target at a time."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import httpx

from shared.clients.http_client import http_client
from verify import request_examples
from verify.actors import Actors, Person, create_actors
from verify.attacks import INVITED, REFUSALS, Attack, Credentials, Group, failure_reason, leak
from verify.permissions import permissions
from verify.request_generator import Request
from verify.row_digest import Extent, Rows, State, difference
from verify.target_deployment import Deployment, Finding
from verify.temporary_rows import Memberships
from verify.victim_objects import ObjectFactory, Objects, Values

TIMEOUT_SECONDS = 120
CONTROL, PRIVATE_CONTROL = "positive control", "positive control of private objects"
ADD_REQUEST = "add a valid request to verify/request_examples.py"
# Statuses of invalid requests and of disabled parts of the product.
INVALID = {400, 422, 503}


class Target(Protocol):
    @property
    def name(self) -> str: ...

    def request(self, values: Values, *, optional: bool) -> Request: ...


@dataclass(frozen=True)
class Control:
    """The authorized caller whose request succeeds, whether the request shows or changes the victim's data,
    and the responses to callers whose request fails."""

    caller: str = ""
    has_effect: bool = False
    answers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Attempt:
    """An attack that was tried on a target, and the status of the response."""

    target: str
    attack: str
    status: int


class Sweep:
    """Attacks on targets behind one address. The victim's objects are renewed when one of them is gone.

    `attempts` are all attacks so far."""

    def __init__(self, actors: Actors, client: httpx.Client, base: str, headers: Mapping[str, str]) -> None:
        self.actors = actors
        self.factory = ObjectFactory(actors, client)
        self._state = State(actors)
        self._client, self._base, self._headers = client, base, headers
        self._keys: dict[tuple[str, tuple[str, ...]], str] = {}
        self.attempts: list[Attempt] = []
        self.objects: Objects
        self.renew()

    @cached_property
    def credentials(self) -> Credentials:
        return Credentials.of(self.actors, self.objects.other_collection_id)

    def key(self, owner: Person, scopes: Sequence[str]) -> str:
        """The text of an API key of that owner with these scopes. An owner's working keys are limited."""
        if (owner.id, tuple(scopes)) not in self._keys:
            self._keys[owner.id, tuple(scopes)] = self.actors.key(owner, scopes)
        return self._keys[owner.id, tuple(scopes)]

    def renew(self) -> None:
        self.objects = self.factory.create()
        self._baseline = self._state.rows(Extent())

    def renew_if_changed(self, rows: Rows | None = None) -> None:
        if self._baseline - (self.rows() if rows is None else rows):
            self.renew()

    def rows(self) -> Rows:
        return self._state.rows(Extent())

    def send(self, request: Request, headers: Mapping[str, str]) -> httpx.Response:
        return request.send(self._client, self._base, {**self._headers, **headers})

    def attempt(
        self, target: str, attack: str, request: Request, headers: Mapping[str, str]
    ) -> httpx.Response:
        """The response to an attack, which is recorded."""
        response = self.send(request, headers)
        self.attempts.append(Attempt(target, attack, response.status_code))
        return response

    def attack(self, target: Target, group: Group, attacks: Sequence[Attack]) -> Iterator[Finding]:
        """Send these attacks of the group. Yields a finding for each success and each changed row."""
        before = self._state.rows(group.extent)
        # A signed link is a credential of its own, which the attacker does not have.
        link = {"link": self.objects.forged_link}
        values_of: dict[str, Values] = {
            victim: {**getattr(self.objects, victim), **link}
            for victim in ("shared", "private", "restricted")
        }
        has_optional_fields = {
            victim: target.request(values, optional=False).shape()
            != target.request(values, optional=True).shape()
            for victim, values in values_of.items()
        }
        for attack in attacks:
            if attack.name.startswith(INVITED) and target.name in request_examples.OF_THE_INVITED:
                continue
            if not attack.optional and not has_optional_fields[attack.victim]:
                continue  # No field may be left out: the attack was made.
            request = target.request(values_of[attack.victim], optional=attack.optional)
            response = self.attempt(target.name, attack.name, request, attack.headers)
            is_refused = self._is_refused_to_all(target, attack, response)
            if reason := failure_reason(attack, group, request, response, is_refused=is_refused):
                yield Finding(target.name, attack.name, reason)
            if response.is_success and (changed := difference(before, self._state.rows(group.extent))):
                yield Finding(target.name, attack.name, f"it changed {changed}")
                before = self._state.rows(group.extent)
        if changed := difference(before, self._state.rows(group.extent)):
            yield Finding(target.name, "attacks that were refused", f"one of them changed {changed}")

    def _is_refused_to_all(self, target: Target, attack: Attack, response: httpx.Response) -> bool:
        """Whether the victim org's admin gets the same status, because the request is invalid or that part of
        the product is disabled. If no request of a target is valid, its positive control fails."""
        if response.status_code not in INVALID:
            return False
        request = target.request(self.objects.shared, optional=attack.optional)
        rightful = self.send(request, bearer(self.actors.token(self.actors.admin)))
        return rightful.status_code == response.status_code

    def control(self, target: Target, callers: Mapping[str, Mapping[str, str]]) -> Control:
        """The first authorized caller whose request has an effect, else the first whose request succeeds."""
        control = Control()
        for name, headers in callers.items():
            response, effect = self.effect(target, headers)
            if response.is_error and not any(code in response.text for code in request_examples.SWITCHED_OFF):
                answer = f"{name}: {response.status_code} {response.text[:150]}"
                control = replace(control, answers=(*control.answers, answer))
            elif effect or response.is_error:
                return Control(name, has_effect=True)
            elif not control.caller:
                control = replace(control, caller=name)
        return control

    def effect(
        self, target: Target, headers: Mapping[str, str], attack: str = ""
    ) -> tuple[httpx.Response, str]:
        """The response, and the victim's data that it shows or changes. Changed objects are created again.
        With the name of an attack, the call is recorded."""
        before = self.rows()
        request = target.request(self.objects.shared, optional=True)
        response = (
            self.attempt(target.name, attack, request, headers) if attack else self.send(request, headers)
        )
        markers = (self.actors.marker, self.actors.private_marker, self.actors.org_marker)
        ids = self.objects.ids - {self.actors.org_id}
        after = self.rows()
        effect = leak(response, request, markers, ids) or difference(before, after)
        self.renew_if_changed(after)
        return response, effect if response.is_success else ""

    def private_control_findings(self, target: Target, control: Control) -> Iterator[Finding]:
        """The member's private objects must not be refused to the member: an attack would show nothing."""
        if control.caller != "member":
            return  # Perhaps the target is for admins.
        values = {**self.objects.private, "link": self.objects.forged_link}
        request = target.request(values, optional=True)
        response = self.send(request, bearer(self.actors.token(self.actors.member)))
        self.renew_if_changed()
        is_off = any(code in response.text for code in request_examples.SWITCHED_OFF)
        if response.status_code in REFUSALS and not is_off:
            yield Finding(target.name, PRIVATE_CONTROL, f"{response.status_code} {response.text[:200]}")

    def control_findings(self, target: Target, control: Control, *, needs_effect: bool) -> Iterator[Finding]:
        """An authorized request must succeed, and show or change the victim's data."""
        if not control.caller:
            detail = f"no rightful caller succeeds, {ADD_REQUEST}: {'; '.join(control.answers)}"
            yield Finding(target.name, CONTROL, detail)
        elif needs_effect and not control.has_effect:
            detail = f"the request of {control.caller} shows and changes nothing, {ADD_REQUEST}"
            yield Finding(target.name, CONTROL, detail)
        permission = permissions().get(target.name)
        if permission and control.caller in permission.lesser_callers:
            detail = f"the request succeeds, and verify/permissions.json names {permission.caller}"
            yield Finding(target.name, f"the {control.caller} of the victim org", detail)

    def scope_findings(self, target: Target, named_scopes: set[str]) -> Iterator[Finding]:
        """The scopes that a refusal names are those of the target's permission."""
        permission = permissions().get(target.name)
        if permission and permission.scopes not in (None, named_scopes - {"admin"}):
            named, stated = sorted(named_scopes - {"admin"}), sorted(permission.scopes or ())
            detail = f"the refusal names {named}, and verify/permissions.json {stated}"
            yield Finding(target.name, "scopes", detail)


@contextmanager
def open_sweep(
    deployment: Deployment, base: str, headers: Mapping[str, str], memberships: Memberships
) -> Iterator[Sweep]:
    """A sweep that sends requests to `base` with these headers. At the end its orgs and users are deleted."""
    with create_actors(deployment, memberships) as actors, http_client(TIMEOUT_SECONDS) as client:
        yield Sweep(actors, client, base, headers)


def bearer(token: str) -> dict[str, str]:
    """The header that carries a token."""
    return {"Authorization": f"Bearer {token}"}
