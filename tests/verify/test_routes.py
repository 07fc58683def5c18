"""The sweep of the test stack's routes: no attack succeeds."""

from collections.abc import Iterator
from importlib import import_module

import pytest

from functions.server import SLUGS
from local.stack import Stack
from local.verify_command import deployment_of
from tests.functions.app_server import site
from tests.upload_client import Uploads
from verify.route_sweep import open_route_sweep, sweep_routes
from verify.target_sweep import Sweep


@pytest.fixture(scope="module")
def sweep(stack: Stack) -> Iterator[Sweep]:
    with open_route_sweep(deployment_of(stack)) as sweep:
        yield sweep


def test_no_attack_on_an_upload_succeeds(uploading: Uploads):
    """The test stack has no bucket for files that are too large for a request."""
    names = {"POST /v1/documents/upload", "POST /v1/documents/uploaded"}
    stack = uploading.world.stack
    with site(uploading.core) as url, open_route_sweep(deployment_of(stack, url)) as sweep:
        assert [str(finding) for finding in sweep_routes(sweep, only=names.__contains__)] == []
        assert "upload" in sweep.objects.shared


@pytest.mark.parametrize("slug", SLUGS)
def test_no_attack_on_a_route_succeeds(sweep: Sweep, slug: str):
    apps = {slug: import_module(SLUGS[slug]).app}
    assert [str(finding) for finding in sweep_routes(sweep, apps)] == []
