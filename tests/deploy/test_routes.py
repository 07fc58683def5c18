"""The events of serverless.yml, by API Gateway's rules: each route of openapi/ reaches its own function.

The rules are of "Create routes for HTTP APIs in API Gateway" in AWS' developer guide: an exact path is
preferred to one with {proxy+}, and of several with {proxy+} the most specific one is.
"""

import re
from collections.abc import Iterator, Mapping

import pytest

from local.tools import openapi
from tests.deploy.conftest import Package

ANY = re.compile(r"ANY (/[^{}+]*)(\{proxy\+\})?")
PREFLIGHT = "options"
# Values of parameters. Names of indexes and namespaces may have slashes.
VALUES = {"index_name": ("a", "a/b"), "namespace": ("a", "a/b")}


def selected(routes: Mapping[str, str], path: str) -> str | None:
    """The route that API Gateway selects for any method of a path."""
    candidates = []
    for key in routes:
        route = ANY.fullmatch(key)
        assert route, f"{key}: the rules of this function cover all methods of a path with {{proxy+}} at most"
        prefix, is_greedy = route.groups()
        if is_greedy and path.startswith(prefix) and path != prefix:
            candidates.append((False, len(prefix), key))
        elif not is_greedy and path == prefix:
            candidates.append((True, len(prefix), key))
    return max(candidates)[2] if candidates else None


def documented() -> Iterator[tuple[str, str, str]]:
    """Slug, method and path of every request that a document describes, and of its preflight."""
    for slug, method, template in openapi.operations():
        (name,) = {*re.findall(r"\{(\w+)\}", template)} & {*VALUES} or {""}
        for value in VALUES.get(name, ("",)):
            path = re.sub(r"\{\w+\}", "1", template.replace(f"{{{name}}}", value))
            yield from ((slug, method, path), (slug, PREFLIGHT, path))


@pytest.fixture(scope="module")
def requests() -> list[tuple[str, str, str]]:
    return list(documented())


def test_every_documented_route_and_its_preflight_reach_their_function(
    packaged: Package, requests: list[tuple[str, str, str]]
):
    wrong = {
        f"{method.upper()} {path}": (route, slug)
        for slug, method, path in requests
        if packaged.routes.get(route := selected(packaged.routes, path) or "") != slug
    }
    assert wrong == {}
    assert {slug for slug, _, _ in requests} == set(packaged.functions)


def test_every_event_is_needed(packaged: Package, requests: list[tuple[str, str, str]]):
    used = {selected(packaged.routes, path) for _, _, path in requests}
    assert set(packaged.routes) - used == set()
    for key, slug in packaged.routes.items():
        others = {other: target for other, target in packaged.routes.items() if other != key}
        own = {path for owner, _, path in requests if owner == slug}
        assert any(others.get(selected(others, path) or "") != slug for path in own), key
