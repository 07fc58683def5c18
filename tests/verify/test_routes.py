"""The sweep of the test stack's routes: no attack succeeds."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from functions.server import SLUGS
from local import access_tokens
from local.stack import Stack
from local.verify_command import deployment_of
from shared.errors import NoOrg
from tests.functions.app_server import site
from tests.upload_client import Uploads
from verify import request_examples
from verify.permissions import permissions
from verify.route_operations import routes
from verify.route_sweep import open_route_sweep, sweep_routes
from verify.target_sweep import Sweep, bearer


@pytest.fixture(scope="module")
def sweep(stack: Stack) -> Iterator[Sweep]:
    with open_route_sweep(deployment_of(stack)) as sweep:
        yield sweep


def test_no_attack_on_an_upload_succeeds(uploading: Uploads):
    """The test stack has no bucket for files that are too large for a request."""
    names = {"POST /v1/documents/upload", "POST /v1/documents/uploaded"}
    stack, server = uploading.world.stack, uploading.server
    with site(uploading.services) as url:
        deployment = replace(
            deployment_of(stack, url), project_url=server.url, issuer=access_tokens.issuer(stack.url)
        )
        with open_route_sweep(deployment) as sweep:
            assert [str(finding) for finding in sweep_routes(sweep, only=names.__contains__)] == []
            assert "upload" in sweep.objects.shared
            assert any(sweep.actors.org_id in name for name in server.objects)
    # The end of the sweep removes its files, through Storage.
    assert not any(sweep.actors.org_id in name for name in server.objects)


def test_every_route_that_checks_its_caller_has_a_permission():
    others = request_examples.PUBLIC | request_examples.BY_LINK | request_examples.OPERATORS.keys()
    names = {route.name for route in routes() if not route.is_alias} - others
    assert names == {name for name in permissions() if " " in name}


def test_every_route_refuses_a_user_without_an_org(sweep: Sweep, subtests: pytest.Subtests):
    """At each path of the documents. The index and the knowledge API have no field for a code, Dify's has a
    number."""
    sentence = str(NoOrg())
    others = request_examples.PUBLIC | request_examples.BY_LINK | request_examples.OPERATORS.keys()
    others |= request_examples.OF_THE_INVITED
    token = sweep.actors.token(sweep.actors.stranger)
    for route in routes():
        if route.example not in others:
            with subtests.test(route=route.name):
                response = sweep.send(route.request(sweep.objects.shared, optional=True), bearer(token))
                assert response.status_code == 403, response.text
                assert sentence in response.text
                bodies = {"detail": sentence}, {"error_code": 1002, "error_msg": sentence}
                assert '"no_org"' in response.text or response.json() in bodies
                assert "403" in route.operation["responses"]


@pytest.mark.parametrize("slug", SLUGS)
def test_no_attack_on_a_route_succeeds(sweep: Sweep, slug: str):
    names = {route.name for route in routes() if route.slug == slug}
    assert [str(finding) for finding in sweep_routes(sweep, only=names.__contains__)] == []
