"""Who belongs where: memberships, how a token narrows them, and how an adopter plugs in their own."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.types.json import Jsonb

from local.stack import Stack
from tests.actors import Actor, Org, World, put_arguments, store_arguments, vector
from tests.conftest import People
from tests.sql.sql_as_user import become
from tests.verify.test_run import sql_of


def orgs_of(world: World, actor: Actor, function: str = "current_org_ids", **claims: Any) -> set[str]:
    return {str(org) for (org,) in world.as_user(actor, f"select * from rag.{function}()", **claims)}


def says_member(actor: Actor, org: Any, **claims: Any) -> bool:
    """What is_org_member answers this user over PostgREST."""
    answer = actor.rpc("is_org_member", {"org_id": org}, token=actor.token(**claims))
    assert answer.status_code == 200, answer.text
    member: bool = answer.json()
    return member


def narrowed(org: Org | str | None) -> dict[str, Any]:
    """The claim of a token that counts for one org only."""
    return {"rag": {"org": org.id if isinstance(org, Org) else org}}


def test_each_user_has_their_own_orgs_and_roles(people: People, world: World):
    eve = world.user(people.acme)
    world.sql("insert into rag.members values (%s, %s, 'admin')", people.bolt.id, eve.id)
    acme, bolt = people.acme.id, people.bolt.id
    for actor, orgs, admin_orgs in (
        (people.ann, {acme}, set()),
        (people.bob, {bolt}, set()),
        (people.kim, {acme, bolt}, set()),
        (people.sam, set(), set()),
        (people.ada, {acme}, {acme}),
        (eve, {acme, bolt}, {bolt}),
    ):
        assert orgs_of(world, actor) == orgs
        assert orgs_of(world, actor, "admin_org_ids") == admin_orgs
        for org in (acme, bolt, None, str(uuid4())):
            assert says_member(actor, org) is (org in orgs)
    assert people.ann.rpc("is_org_member", {"org_id": "acme"}).status_code == 400


def test_the_policy_of_members_may_call_is_org_member(people: People, world: World):
    """What the function is for: an adopter's own table, in a transaction that is rolled back."""
    with psycopg.connect(world.stack.database_url()) as connection:
        connection.execute(
            "create table public.invoices (org_id uuid, total int); "
            "alter table public.invoices enable row level security; "
            "create policy own on public.invoices for select to authenticated "
            "using (public.is_org_member(org_id))"
        )
        for org, total in ((people.acme, 1), (people.bolt, 2)):
            connection.execute("insert into public.invoices values (%s, %s)", (org.id, total))
        become(connection, people.bob)
        assert connection.execute("select total from public.invoices").fetchall() == [(2,)]
        connection.rollback()


def test_a_token_restricted_to_an_org_counts_only_there(people: People, world: World):
    for actor, own in ((people.kim, {people.bolt.id}), (people.ann, set())):
        assert orgs_of(world, actor, **narrowed(people.bolt)) == own
        for org in (people.acme.id, people.bolt.id):
            assert says_member(actor, org, **narrowed(people.bolt)) is (org in own)
    world.sql("insert into rag.members values (%s, %s, 'admin')", people.bolt.id, people.ada.id)
    assert orgs_of(world, people.ada, "admin_org_ids") == {people.acme.id, people.bolt.id}
    assert orgs_of(world, people.ada, "admin_org_ids", **narrowed(people.bolt)) == {people.bolt.id}


NO_ORGS: list[Any] = ["", "*", str(UUID(int=0)), ["a"], {"org": "x"}]
UNCLAIMED: list[dict[str, Any]] = [{}, {"rag": {}}, {"rag": None}, {"rag": {"org": None}}]


def test_a_malformed_org_claim_finds_nothing_and_none_finds_all(
    people: People, world: World, subtests: pytest.Subtests
):
    both = {people.acme.id, people.bolt.id}
    cases = [({"rag": {"org": org}}, set[str]()) for org in NO_ORGS]
    for claims, orgs in [*cases, *((claims, both) for claims in UNCLAIMED)]:
        with subtests.test(claims=claims):
            assert orgs_of(world, people.kim, **claims) == orgs


class Teams:
    """A project whose memberships are in a table of its own, `public.team_members`, and never in ours."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection
        connection.execute(
            """
            create table public.team_members (team uuid, person uuid, is_owner boolean, left_at date);
            alter table public.team_members enable row level security;
            create policy own on public.team_members for select to authenticated using (person = auth.uid());
            create or replace function rag.memberships()
            returns table (org_id uuid, role text)
            language sql stable security invoker set search_path = ''
            as $$
              select team, case when is_owner then 'admin' else 'member' end
              from public.team_members
              where person = (select auth.uid()) and left_at is null;
            $$;
            """
        )

    def joins(
        self, actor: Actor, org: Org | None, *, is_owner: bool = False, left_at: str | None = None
    ) -> None:
        row = [org.id if org else None, actor.id, is_owner, left_at]
        self.connection.execute("set local role postgres")
        self.connection.execute("insert into public.team_members values (%s, %s, %s, %s)", row)

    def ask(self, actor: Actor, statement: str, *parameters: Any, **claims: Any) -> list[tuple[Any, ...]]:
        become(self.connection, actor, **claims)
        return self.connection.execute(statement.encode(), parameters).fetchall()

    def put(self, actor: Actor, org: Org, title: str, **fields: Any) -> str:
        arguments = put_arguments(org, [vector(1)], title=title, **fields)
        documents = Jsonb(store_arguments(**arguments)["documents"])
        statement = "select document_id::text from public.rag_put_documents('default', %s, org_id => %s)"
        ((document_id,),) = self.ask(actor, statement, documents, org.id)
        return str(document_id)

    def titles(self, actor: Actor, **claims: Any) -> set[str]:
        statement = "select title from public.rag_match(%s::extensions.vector, 10)"
        return {title for (title,) in self.ask(actor, statement, str(vector(1)), **claims)}


def test_the_documented_memberships_demand_a_second_factor(stack: Stack, people: People):
    (statement,) = sql_of("own-members.md", "A second factor")
    with psycopg.connect(stack.database_url()) as connection:
        connection.execute(statement.encode())

        def orgs(**claims: Any) -> list[tuple[Any, ...]]:
            become(connection, people.ann, **claims)
            return connection.execute("select id::text from rag.current_org_ids() as own (id)").fetchall()

        assert (orgs(), orgs(aal="aal1")) == ([], [])
        own = [(people.acme.id,)]
        assert orgs(aal="aal2") == own
        # An API key of the user.
        assert orgs(rag={"org": people.acme.id, "scopes": ["retrievals:read"]}) == own
        connection.rollback()


@pytest.fixture
def teams(stack: Stack, people: People) -> Iterator[Teams]:
    """All in one transaction, which is rolled back."""
    with psycopg.connect(stack.database_url()) as connection:
        yield Teams(connection)
        connection.rollback()


def test_an_adopter_s_memberships_replace_the_default_ones(people: People, teams: Teams):
    teams.joins(people.sam, people.acme)
    teams.joins(people.bob, people.bolt, is_owner=True)
    teams.joins(people.alf, people.acme, left_at="2026-01-01")
    for actor, current, admin in (
        (people.sam, [(people.acme.id,)], []),
        (people.bob, [(people.bolt.id,)], [(people.bolt.id,)]),
        (people.alf, [], []),  # left the team, and is a member by a table of ours that is not read now
        (people.ann, [], []),
    ):
        assert teams.ask(actor, "select id::text from rag.current_org_ids() as ids (id)") == current
        assert teams.ask(actor, "select id::text from rag.admin_org_ids() as ids (id)") == admin
    assert teams.ask(people.sam, "select public.is_org_member(%s)", people.acme.id) == [(True,)]
    assert teams.ask(people.ann, "select public.is_org_member(%s)", people.acme.id) == [(False,)]
    assert teams.ask(people.sam, "select id::text from rag.orgs") == [(people.acme.id,)]
    assert teams.ask(people.ann, "select id::text from rag.orgs") == []


def test_an_adopter_s_auth_uid_admits_no_issuer_that_is_not_trusted(people: People, teams: Teams):
    """Ann's id may be a subject at any issuer that PostgREST trusts."""
    teams.joins(people.ann, people.acme, is_owner=True)
    teams.put(people.ann, people.acme, "shared")
    for statement in (
        "select * from rag.documents",
        "select public.is_org_member(%(org)s)",
        "select rag.may_read_object('a/b/c')",
        "select rag.may_receive('rag:' || %(org)s)",
    ):
        with teams.connection.transaction(force_rollback=True):
            become(teams.connection, people.ann, iss="https://unlisted.example")
            with pytest.raises(psycopg.Error) as raised:
                teams.connection.execute(statement.encode(), {"org": people.acme.id})
        assert raised.value.sqlstate == "PT401", statement


def test_every_policy_and_function_uses_an_adopter_s_memberships(people: People, teams: Teams):
    """Sam's team is Acme; ann, a member by our table, is a stranger here."""
    teams.joins(people.sam, people.acme)
    teams.joins(people.ada, people.acme, is_owner=True)
    teams.joins(people.bob, people.bolt)
    shared = teams.put(people.sam, people.acme, "shared")
    teams.put(people.sam, people.acme, "sam's own", private=True)
    teams.put(people.bob, people.bolt, "of Bolt")
    assert teams.titles(people.sam) == {"shared", "sam's own"}
    assert teams.titles(people.ada) == {"shared", "sam's own"}
    assert teams.titles(people.bob) == {"of Bolt"}
    for table in ("collections", "documents", "chunks"):
        assert teams.ask(people.ann, f"select * from rag.{table}") == []
        assert len(teams.ask(people.sam, f"select * from rag.{table}")) > 0
    delete = "select public.rag_delete_document(%s)"
    with pytest.raises(psycopg.DatabaseError, match="You belong to no org"), teams.connection.transaction():
        teams.ask(people.ann, delete, shared)
    assert teams.ask(people.bob, delete, shared) == [(False,)]
    assert teams.ask(people.sam, delete, shared) == [(True,)]
    assert teams.titles(people.ada) == {"sam's own"}


def test_an_adopter_s_orgs_are_listed_without_a_row_in_rag_orgs(people: People, teams: Teams):
    """Each once, with the strongest role; a membership without an org is none."""
    elsewhere = Org(str(uuid4()), "")
    teams.joins(people.sam, elsewhere)
    teams.joins(people.sam, people.acme)
    teams.joins(people.sam, people.acme, is_owner=True)
    teams.joins(people.bob, people.bolt)
    teams.joins(people.sam, None)
    listed = "select id::text, name, role from public.rag_list_orgs()"
    own = [(people.acme.id, "Acme", "admin"), (elsewhere.id, None, "member")]
    assert teams.ask(people.sam, listed) == own
    assert teams.ask(people.sam, listed, **narrowed(elsewhere)) == [(elsewhere.id, None, "member")]
    with pytest.raises(psycopg.DatabaseError, match="You belong to no org"):
        teams.ask(people.ann, listed)


def test_a_write_outside_an_adopter_s_memberships_is_refused(people: People, teams: Teams):
    """An adopter's table may have rows without an org: a null among the orgs changes no answer."""
    teams.joins(people.sam, people.acme)
    teams.joins(people.sam, None, is_owner=True)
    teams.put(people.sam, people.acme, "of Acme")
    assert teams.titles(people.sam) == {"of Acme"}
    for org_id in (None, people.bolt.id):
        assert teams.ask(people.sam, "select public.is_org_member(%s)", org_id) == [(False,)]
    for actor, org, code in ((people.sam, people.bolt, "PT404"), (people.ann, people.acme, "PT403")):
        with pytest.raises(psycopg.DatabaseError) as refused, teams.connection.transaction():
            teams.put(actor, org, "into another's")
        assert refused.value.sqlstate == code


def test_no_replacement_widens_a_token(people: People, teams: Teams):
    """The org claim narrows whatever memberships there are, admin or not."""
    teams.joins(people.sam, people.acme, is_owner=True)
    teams.joins(people.sam, people.bolt, is_owner=True)
    teams.put(people.sam, people.acme, "of Acme")
    teams.put(people.sam, people.bolt, "of Bolt")
    assert teams.titles(people.sam) == {"of Acme", "of Bolt"}
    assert teams.titles(people.sam, **narrowed(people.bolt)) == {"of Bolt"}
    admin = "select id::text from rag.admin_org_ids() as ids (id)"
    assert teams.ask(people.sam, admin, **narrowed(people.bolt)) == [(people.bolt.id,)]
    with pytest.raises(psycopg.DatabaseError, match="You belong to no org"):
        teams.titles(people.sam, **narrowed(str(uuid4())))
