"""The sweep of the test stack's SQL functions and tables: no attack succeeds."""

from collections.abc import Callable, Iterator
from zlib import crc32

import pytest

from local.stack import Stack
from local.verify_command import deployment_of
from verify import request_examples
from verify.permissions import permissions
from verify.sql_functions import sql_functions
from verify.sql_sweep import open_sql_sweep, sweep_functions, sweep_tables
from verify.target_sweep import Sweep

pytestmark = pytest.mark.postgres

# A sweep of everything would be one test of half a minute: each part takes the names of one remainder.
PARTS = 8


def in_part(part: int) -> Callable[[str], bool]:
    return lambda name: crc32(name.encode()) % PARTS == part


@pytest.fixture(scope="module")
def sweep(stack: Stack) -> Iterator[Sweep]:
    with open_sql_sweep(deployment_of(stack)) as sweep:
        yield sweep


def test_every_function_with_a_control_has_a_permission(sweep: Sweep):
    names = {function.name for function in sql_functions(sweep.actors)} - request_examples.WITHOUT_CONTROL
    assert names == {name for name in permissions() if " " not in name}


@pytest.mark.parametrize("part", range(PARTS))
def test_no_attack_on_an_sql_function_succeeds(sweep: Sweep, part: int):
    assert [str(finding) for finding in sweep_functions(sweep, in_part(part))] == []


@pytest.mark.parametrize("part", range(PARTS))
def test_no_table_is_reachable(sweep: Sweep, part: int):
    assert [str(finding) for finding in sweep_tables(sweep, in_part(part))] == []
