"""The sweep of every route: attacks, a positive control, and the scopes that suffice."""

import re
from collections.abc import Callable, Iterator, Mapping

import httpx
from fastapi import FastAPI

from verify import attacks, examples, routes
from verify.actors import SCOPES, Person
from verify.attacks import REFUSALS, Credentials, Group
from verify.deployment import Deployment, Finding
from verify.sweep import CONTROL, Sweep, bearer, open_sweep

NOT_AUTHENTICATED = 401
# An alias of a route has the same endpoint function: these show that the same checks precede it.
ON_ALIASES = {
    "no credential",
    "a token signed with another key",
    "a revoked API key",
    "an admin of another org",
}


def sweep_routes(
    deployment: Deployment,
    apps: Mapping[str, FastAPI] | None = None,
    only: Callable[[str], bool] = lambda _: True,
) -> list[Finding]:
    """Findings about the routes of the apps, by default those of all functions, whose name `only` accepts."""
    findings = [
        Finding(path, "description", "the route is not described") for path in routes.hidden_paths(apps)
    ]
    with open_sweep(deployment, deployment.url, {}) as sweep:
        credentials = Credentials.of(sweep.cast, sweep.objects.other_collection_id)
        for route in routes.routes(apps):
            if only(route.name):
                findings += _attack_route(sweep, credentials, route)
    return findings


def _attack_route(sweep: Sweep, credentials: Credentials, route: routes.Route) -> Iterator[Finding]:
    sweep.owner.tidy(sweep.objects)
    if route.name in examples.FIRST:
        (first,) = (one for one in routes.routes() if one.name == examples.FIRST[route.name])
        sweep.send(
            first.request(sweep.objects.shared, optional=False), bearer(sweep.cast.token(sweep.cast.admin))
        )
    groups = list(attacks.on_routes(sweep.cast, sweep.objects, credentials))
    if route.name in examples.PUBLIC:
        yield from _attack_public_route(sweep, groups[0], route)
        return
    if route.is_alias:
        yield from sweep.attack(
            route, groups[0], [one for one in groups[0].attacks if one.name in ON_ALIASES]
        )
        return
    for group in groups:
        yield from sweep.attack(route, group, group.attacks)
    sweep.renew_if_changed()
    callers = _callers(sweep, route)
    if not callers:
        return
    control = sweep.control(route, callers)
    needs_effect = route.name not in examples.WITHOUT_EFFECT
    yield from sweep.control_findings(route, control, needs_effect=needs_effect)
    if control.caller in ("member", "admin"):
        yield from _attack_scopes(sweep, credentials, route, control.caller)


def _attack_public_route(sweep: Sweep, group: Group, route: routes.Route) -> Iterator[Finding]:
    """It answers without a credential, and shows nothing of an org."""
    request = route.request(sweep.objects.shared, optional=True)
    response = sweep.send(request, {})
    if shown := attacks.leak(response, request, group.markers, group.ids):
        yield Finding(route.name, "no credential", f"the response shows {shown}")
    elif response.is_error:
        yield Finding(route.name, CONTROL, f"{response.status_code} {response.text[:200]}")
    if route.name in examples.PUBLIC_WITH_CHECK:
        yield from sweep.attack(route, group, [one for one in group.attacks if one.authorization])


def _callers(sweep: Sweep, route: routes.Route) -> dict[str, dict[str, str]]:
    """Rightful callers: who brought the private objects, an admin, and the operator."""
    cast = sweep.cast
    tokens = {"member": cast.token(cast.member), "admin": cast.token(cast.admin)}
    if route.name in examples.OPERATORS:
        token = getattr(cast.deployment, examples.OPERATORS[route.name])
        tokens = {"operator": token} if token else {}
    if route.name in examples.BY_LINK:
        return {"link": {}}
    return {name: {"Authorization": f"Bearer {token}"} for name, token in tokens.items()}


def _attack_scopes(
    sweep: Sweep, credentials: Credentials, route: routes.Route, caller: str
) -> Iterator[Finding]:
    """Keys of the caller: one scope that does not suffice, then every scope but those that do."""
    if route.name in examples.OPEN_TO_EVERY_SCOPE:
        return
    owner: Person = getattr(sweep.cast, caller)

    def answer(key: str) -> httpx.Response:
        response = sweep.send(route.request(sweep.objects.shared, optional=True), bearer(key))
        sweep.renew_if_changed()
        return response

    for scope in SCOPES:
        refusal = answer(credentials.single[owner.id, scope])
        if refusal.status_code in REFUSALS:
            break
    else:
        yield Finding(route.name, "a key with one scope", "every scope suffices")
        return
    if refusal.status_code == NOT_AUTHENTICATED:
        return  # The route takes no API key.
    # The refusal names the scopes that suffice; `admin` stands for all.
    named = {scope for scope in SCOPES if re.search(rf"\b{scope}\b", refusal.text)}
    others = sorted({*SCOPES} - {*named, "admin"})
    if not named:
        yield Finding(route.name, "a key with one scope", f"the refusal names no scope: {refusal.text[:200]}")
    elif answer(sweep.cast.key(owner, others)).status_code not in REFUSALS:
        yield Finding(route.name, f"a key with {', '.join(others)}", "the scopes suffice")
