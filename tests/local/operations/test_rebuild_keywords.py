"""Command `rebuild-keywords`, which an operator runs with the database's own URL."""

from local.stack import Stack
from tests.actors import NOBODYS, World
from tests.conftest import People
from tests.local.command_line import run_local
from tests.sql import passages

EMPTY = "update rag.document_terms set terms = '{}', places = '{}' where org_id = %s"


def test_the_index_of_one_org_or_of_all_is_rebuilt(stack: Stack, world: World, people: People):
    member = world.user(people.bolt)
    for actor in (people.ann, member):
        passages.put(world, actor, "the soft logout")
    for org in (people.acme, people.bolt):
        world.sql(EMPTY, org.id)
    done = run_local(stack.folder, "rebuild-keywords", "--org", people.acme.id)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(passages.search(world, people.ann, "softLogout")) == 1
    assert passages.search(world, member, "softLogout") == []
    done = run_local(stack.folder, "rebuild-keywords", "--database", stack.database_url())
    assert done.returncode == 0
    assert len(passages.search(world, member, "softLogout")) == 1


def test_an_unknown_org_is_named(stack: Stack):
    done = run_local(stack.folder, "rebuild-keywords", "--org", NOBODYS)
    assert (done.returncode, done.stderr) == (1, f"error: the database has no org {NOBODYS}\n")
