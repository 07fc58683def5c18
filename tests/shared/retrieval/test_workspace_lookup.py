"""Where requests look: workspaces and orgs by their ids, as those who ask may see them."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from shared.errors import NotFound
from shared.retrieval.types import SearchArea
from shared.retrieval.workspace_lookup import locate
from shared.services import Services
from shared.types import Principal
from tests.actors import Actor, World
from tests.conftest import People

Made = Callable[..., str]


@pytest.fixture
def made(world: World) -> Made:
    """Makes a workspace of an org; its id."""

    def make(org_id: str, owner: Actor | None = None, loads: str | None = None) -> str:
        ((collection_id,),) = world.sql(
            "insert into rag.collections (org_id, owner_id, name, loading_name) values (%s, %s, %s, %s) "
            "returning id::text",
            org_id,
            owner.id if owner else None,
            str(uuid4()),
            loads,
        )
        return str(collection_id)

    return make


def missing(services: Services, caller: Principal, *question: str | None) -> tuple[str, dict[str, Any]]:
    with pytest.raises(NotFound) as refused:
        locate(services.database, caller, *question)
    return refused.value.code, refused.value.details


def test_a_member_finds_a_workspace_and_an_org_by_id(services: Services, people: People, made: Made):
    home = made(people.acme.id)
    ann = people.ann.principal
    assert locate(services.database, ann, f"WS_{home.upper()}", None) == SearchArea(people.acme.id, home)
    assert locate(services.database, ann, home, f"org_{people.acme.id}") == SearchArea(people.acme.id, home)
    assert locate(services.database, ann, None, people.acme.id) == SearchArea(people.acme.id, None)


def test_a_member_of_two_orgs_finds_each_workspace_in_its_org(services: Services, people: People, made: Made):
    home, other = made(people.acme.id), made(people.bolt.id)
    kim = people.kim.principal
    assert locate(services.database, kim, home, None).org_id == people.acme.id
    assert locate(services.database, kim, other, None).org_id == people.bolt.id
    code, details = missing(services, kim, home, people.bolt.id)
    assert (code, details["workspace_id"]) == ("workspace_not_found", home)


def test_a_workspace_that_is_being_loaded_is_missing(services: Services, people: People, made: Made):
    loading = made(people.acme.id, loads="x")
    assert missing(services, people.ann.principal, loading, None)[0] == "workspace_not_found"
