"""Sweep of all routes."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

import httpx
from fastapi import FastAPI

from verify import attacks, request_examples, route_operations
from verify.actors import RAG_MEMBERS, SCOPES, Person
from verify.attacks import REFUSALS, Group
from verify.request_generator import Request
from verify.target_deployment import Deployment, Finding, SetupFailed
from verify.target_sweep import CONTROL, Sweep, bearer, open_sweep
from verify.temporary_rows import Memberships

NOT_AUTHENTICATED = 401
# An alias of a route has the same endpoint function and dependencies: these attacks check the path itself.
ON_ALIASES = {
    "no credential",
    "a token signed with another key",
    "a revoked API key",
    "an admin of another org",
}


@contextmanager
def open_route_sweep(deployment: Deployment, memberships: Memberships = RAG_MEMBERS) -> Iterator[Sweep]:
    """A sweep of the functions' routes. Raises SetupFailed if a credential of an attacker works nowhere: each
    attack with it would be refused for that reason."""
    with open_sweep(deployment, deployment.url, {}, memberships) as sweep:
        actors = sweep.actors
        tokens = [
            actors.token(person) for person in (actors.colleague, actors.foreign_admin, actors.foreign_member)
        ]
        for credential in (*tokens, sweep.credentials.bound, sweep.credentials.foreign):
            response = sweep.send(Request("GET", "/v1/collections"), bearer(credential))
            if response.is_error:
                raise SetupFailed(f"GET /v1/collections: {response.status_code} {response.text[:500]}")
        yield sweep


def sweep_routes(
    sweep: Sweep,
    apps: Mapping[str, FastAPI] | None = None,
    only: Callable[[str], bool] = lambda _: True,
) -> Iterator[Finding]:
    """Findings about the routes of the apps, by default those of all functions, whose name `only` accepts."""
    for path in route_operations.hidden_paths(apps):
        yield Finding(path, "description", "the route is not described")
    for route in route_operations.routes(apps):
        if only(route.name):
            yield from _attack_route(sweep, route)


def _attack_route(sweep: Sweep, route: route_operations.Route) -> Iterator[Finding]:
    sweep.factory.delete_attackers_objects(sweep.objects)
    if route.name in request_examples.FIRST:
        (first,) = (
            other for other in route_operations.routes() if other.name == request_examples.FIRST[route.name]
        )
        sweep.send(
            first.request(sweep.objects.shared, optional=False),
            bearer(sweep.actors.token(sweep.actors.admin)),
        )
    groups = list(attacks.on_routes(sweep.actors, sweep.objects, sweep.credentials))
    if route.name in request_examples.OPERATORS:
        groups = [_on_operators_route(group, _operators_token(sweep, route)) for group in groups]
    if route.name in request_examples.FORBIDDEN_TO_UNAUTHENTICATED:
        groups = [_forbidden_to_unauthenticated(group) for group in groups]
    if route.name in request_examples.PUBLIC:
        yield from _attack_public_route(sweep, groups[0], route)
        return
    if route.is_alias:
        yield from sweep.attack(
            route, groups[0], [attack for attack in groups[0].attacks if attack.name in ON_ALIASES]
        )
        return
    for group in groups:
        yield from sweep.attack(route, group, group.attacks)
    sweep.renew_if_changed()
    callers = _callers(sweep, route)
    if not callers:
        return
    control = sweep.control(route, callers)
    needs_effect = route.name not in request_examples.WITHOUT_EFFECT
    yield from sweep.control_findings(route, control, needs_effect=needs_effect)
    yield from sweep.private_control_findings(route, control)
    if control.caller in ("member", "admin") and route.example not in request_examples.OPEN_TO_EVERY_SCOPE:
        yield from _attack_scopes(sweep, route, control.caller)


def _on_operators_route(group: Group, token: str | None) -> Group:
    """The group's attacks, of which none may succeed: the route shows nothing of an org that could be
    recognised. Where the operator's token is unknown, the route may be off, which is 404."""
    refusals = frozenset() if token else frozenset({404})
    return replace(
        group,
        attacks=tuple(
            replace(attack, may_succeed=False, statuses=attack.statuses | refusals)
            for attack in group.attacks
        ),
    )


def _forbidden_to_unauthenticated(group: Group) -> Group:
    """The group's attacks, with 403 in the place of 401 alone."""
    attacks = (
        replace(attack, statuses=frozenset({403})) if attack.statuses == {NOT_AUTHENTICATED} else attack
        for attack in group.attacks
    )
    return replace(group, attacks=tuple(attacks))


def _operators_token(sweep: Sweep, route: route_operations.Route) -> str | None:
    token: str | None = getattr(sweep.actors.deployment, request_examples.OPERATORS[route.name])
    return token


def _attack_public_route(sweep: Sweep, group: Group, route: route_operations.Route) -> Iterator[Finding]:
    """The route answers without a credential, with no data of an org."""
    request = route.request(sweep.objects.shared, optional=True)
    response = sweep.attempt(route.name, "no credential", request, {})
    if output := attacks.leak(response, request, group.markers, group.ids):
        yield Finding(route.name, "no credential", f"the response shows {output}")
    elif response.is_error is not (route.name in request_examples.REGISTRATION):
        yield Finding(route.name, CONTROL, f"{response.status_code} {response.text[:200]}")
    if route.name in request_examples.PUBLIC_WITH_CHECK:
        yield from sweep.attack(
            route, group, [attack for attack in group.attacks if attack.headers.keys() == {"Authorization"}]
        )


def _callers(sweep: Sweep, route: route_operations.Route) -> dict[str, dict[str, str]]:
    """Authorized callers: the owner of the private objects, an admin, an invited user, and the operator."""
    actors = sweep.actors
    people = {"member": actors.member, "admin": actors.admin, "invited": actors.invited}
    tokens = {name: actors.token(person) for name, person in people.items()}
    if route.name in request_examples.OPERATORS:
        token = _operators_token(sweep, route)
        tokens = {"operator": token} if token else {}
    if route.name in request_examples.BY_LINK:
        return {"link": {}}
    return {name: {"Authorization": f"Bearer {token}"} for name, token in tokens.items()}


def _attack_scopes(sweep: Sweep, route: route_operations.Route, caller: str) -> Iterator[Finding]:
    """Keys of the caller: with one insufficient scope, then with all insufficient scopes."""
    owner: Person = getattr(sweep.actors, caller)

    def answer(scopes: list[str]) -> httpx.Response:
        request = route.request(sweep.objects.shared, optional=True)
        attack = f"a key with {', '.join(scopes)}"
        response = sweep.attempt(route.name, attack, request, bearer(sweep.key(owner, scopes)))
        sweep.renew_if_changed()
        return response

    for scope in SCOPES:
        refusal = answer([scope])
        if refusal.status_code in REFUSALS:
            break
    else:
        yield Finding(route.name, "a key with one scope", "every scope suffices")
        return
    if refusal.status_code == NOT_AUTHENTICATED:
        return  # The route takes no API key.
    # The refusal names the scopes that suffice; `admin` stands for all.
    sufficient_scopes = {scope for scope in SCOPES if re.search(rf"\b{scope}\b", refusal.text)}
    others = sorted({*SCOPES} - {*sufficient_scopes, "admin"})
    yield from sweep.scope_findings(route, sufficient_scopes)
    if not sufficient_scopes:
        yield Finding(route.name, "a key with one scope", f"the refusal names no scope: {refusal.text[:200]}")
    elif answer(others).status_code not in REFUSALS:
        yield Finding(route.name, f"a key with {', '.join(others)}", "the scopes suffice")
