"""Changes of the schema for the time of a block, in the database that a module's tests share."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.actors import World


@contextmanager
def schema_change(world: World, plant: str, restore: str, exposed: str | None = None) -> Iterator[None]:
    """A change of the schema, undone at the end. `exposed`: what PostgREST learns of, and forgets."""
    world.sql(plant)
    try:
        if exposed:
            reload_schema(world, exposed, is_there=True)
        yield
    finally:
        world.sql(restore)
        if exposed:
            reload_schema(world, exposed, is_there=False)


@contextmanager
def changed_function(world: World, name: str, plant: str | Callable[[str], str]) -> Iterator[None]:
    """An SQL function with another definition, or its own one changed."""
    ((original,),) = world.sql("select pg_get_functiondef(%s::regproc)", name)
    changed = plant if isinstance(plant, str) else plant(original)
    assert changed != original
    with schema_change(world, changed.replace("%", "%%"), original.replace("%", "%%")):
        yield


def reload_schema(world: World, path: str, *, is_there: bool) -> None:
    world.sql("notify pgrst, 'reload schema'")
    actor = world.user()
    until = time.monotonic() + 120
    while True:
        response = actor.request("GET", f"/rest/v1{path}")
        # Its cache of the schema has no such function (PGRST202), or Postgres no such table (42P01). A
        # dropped function that is still in the cache gives another error. While PostgREST reads the schema,
        # it may answer 503.
        is_missing = any(code in response.text for code in ("PGRST202", "PGRST205", "42P01"))
        if response.status_code != 503 and is_missing is not is_there:
            return
        assert time.monotonic() < until
        time.sleep(0.05)
