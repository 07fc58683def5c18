"""The schedule in docs/deploy.md by which the database calls the worker.

The local Postgres has neither pg_cron nor pg_net, so its SQL is parsed, not run.
"""

import re

import psycopg
import pytest

from local import ROOT
from tests.actors import World

SCHEDULE = re.compile(r"select cron\.schedule\(.*?\$\$\);", re.DOTALL)


def parse(world: World, statement: str) -> None:
    """Postgres' own parser; whether what it calls is there is not looked at."""
    world.sql("drop function if exists pg_temp.parsed")
    body = f"$parsed$ begin {statement} end $parsed$"
    world.sql(f"create function pg_temp.parsed() returns void language plpgsql as {body}")


def test_the_documented_schedule_is_sql(world: World):
    (schedule,) = SCHEDULE.findall((ROOT / "docs" / "deploy.md").read_text())
    parse(world, schedule)
    (_, called, _) = schedule.split("$$")
    parse(world, f"{called.strip()};")
    assert "/functions/v1/ingest" in called
    with pytest.raises(psycopg.errors.SyntaxError):
        parse(world, schedule.replace("select", "selct", 1))
