"""The sweep of the test stack: no attack succeeds on a route, an SQL function or a table."""

from collections.abc import Callable
from importlib import import_module
from zlib import crc32

import pytest

from functions.server import SLUGS
from local.stack import Stack
from tests.verify.deployment import deployment_of
from verify.route_sweep import sweep_routes
from verify.sql_sweep import sweep_functions, sweep_tables

# A sweep of everything would be one test of a minute: each part takes the names of one remainder.
PARTS = 8


def in_part(part: int) -> Callable[[str], bool]:
    return lambda name: crc32(name.encode()) % PARTS == part


@pytest.mark.parametrize("slug", SLUGS)
def test_no_attack_on_a_route_succeeds(stack: Stack, slug: str):
    apps = {slug: import_module(SLUGS[slug]).app}
    assert [str(finding) for finding in sweep_routes(deployment_of(stack), apps)] == []


@pytest.mark.postgres
@pytest.mark.parametrize("part", range(PARTS))
def test_no_attack_on_an_sql_function_succeeds(stack: Stack, part: int):
    assert [str(finding) for finding in sweep_functions(deployment_of(stack), in_part(part))] == []


@pytest.mark.postgres
@pytest.mark.parametrize("part", range(PARTS))
def test_no_table_and_no_internal_function_is_reached(stack: Stack, part: int):
    assert [str(finding) for finding in sweep_tables(deployment_of(stack), in_part(part))] == []
