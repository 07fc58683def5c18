"""The playground in real Chromium, before the real functions: what people do, and what must not happen."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from local.demo_corpus import ORGS
from local.playground_server import USERS
from local.stack import Stack
from shared.access import jwt_verifier
from shared.config import Settings
from shared.errors import NoOrg
from shared.services import Services
from tests.actors import Actor, Org, World
from tests.conftest import People
from tests.external_programs import call_worker, run_worker
from tests.functions.app_server import services_with, site
from tests.functions.chat_completions_client import DONE, encode, piece
from tests.functions.search_workspace import MENU, OUTAGE, put
from tests.functions.test_records import UNANSWERABLE, record_requests
from tests.playground.conftest import AXE, Browse, crowd
from tests.playground.markdown import HOSTILE_MARKDOWN, KILN, MARKDOWN
from tests.realtime_server import RealtimeServer
from tests.stand_in_server import Reply, StandIn

QUESTION = "What was the root cause of the billing outage?"
OWNED = "The Ledger service is owned by Priya Nair."
HOSTILE = '<img src=x onerror="globalThis.broken=1"><script>globalThis.broken=2</script>'


@contextmanager
def modelled(settings: Settings, gateway: StandIn, **changes: Any) -> Iterator[str]:
    """A playground before a deployment with that model; its address."""
    model = {"rag_llm_api_key": "sk-model", "rag_llm_url": gateway.url}
    with services_with(settings, **model, **changes) as services, site(services) as url:
        yield url


def streams(*pieces: str | float) -> Reply:
    """A model that says this, and pauses in between."""
    texts = [part if isinstance(part, float) else encode(piece(part))[0] for part in pieces]
    return Reply(chunks=[*texts, *encode(piece()), DONE])


def test_an_answer_streams_and_its_citation_opens_the_passage(
    browse: Browse, readers: People, services: Services
):
    put(services, readers.ann, "incidents", "Owners", f"{OWNED} It keeps the books of both orgs since 2019.")
    browse(
        "follow_a_citation", readers.ann, question="Who owns the Ledger service?", title="Owners",
        quoted=OWNED, connected="Ledger service is owned by Priya Nair",
        edge="Ledger service: owned by Priya Nair",
    )  # fmt: skip


def test_one_click_signs_in_a_demo_user(browse: Browse, stack: Stack, services: Services):
    user_id, email, _ = USERS[0]
    tomas = Actor(stack, user_id, email, Org(ORGS["halden"], "Halden"))
    text = "Error code E-42 on the logger means that its clock is wrong."
    put(services, tomas, "demo", "Error codes", text)
    browse(
        "a_click_signs_in_a_person_of_the_demo", tomas, playground=stack.playground,
        sample="What does error code E-42 on the logger mean?",
    )  # fmt: skip


def test_an_uploaded_document_is_found_only_in_its_org(
    browse: Browse, people: People, stack: Stack, no_jobs: None
):
    with run_worker(stack):
        browse(
            "what_is_uploaded_is_found_by_its_org_alone", people.ann, stranger=people.bob.token(),
            filename="kiln <b>notes.txt", text="The kiln is fired at 1,240 degrees for nine hours.",
            question="At how many degrees is the kiln fired?", answer="1,240 degrees",
        )  # fmt: skip


def test_an_upload_follows_realtime_and_is_polled_where_it_fails(
    browse: Browse, people: People, stack: Stack, world: World, no_jobs: None
):
    def may_join(token: str, topic: str) -> bool:
        return token == ann and world.as_user(people.ann, "select rag.may_receive(%s)", topic) == [(True,)]

    def work(topic: str) -> None:
        call_worker(stack)
        for (document,) in world.sql("select id::text from rag.documents where org_id = %s", people.acme.id):
            working.broadcast(topic, "job", {"id": "j", "document_id": document, "state": "done"})

    ann = people.ann.token()
    working = RealtimeServer("works", may_join=may_join, after_join=work)
    # The page asks no more after the rejected connection.
    ways = ["is-deaf", "refuses", "drops", "rejects"]
    failing = RealtimeServer(*ways, may_join=may_join)
    with working:
        browse(
            "uploads_follow_realtime", people.ann, token=ann, realtime=working.url, ways=["works"], sockets=1
        )
    with failing, run_worker(stack):
        given = {"ways": [*ways, "never"], "sockets": len(ways)}
        browse("uploads_follow_realtime", people.ann, token=ann, realtime=failing.url, **given)
    assert (working.faults, failing.faults) == ([], [])
    assert (len(working.joins), len(failing.joins)) == (1, len(ways) - 1)


def test_a_sign_out_removes_everything_of_the_user(browse: Browse, readers: People):
    browse(
        "nothing_of_who_leaves_stays_or_comes", readers.ann, stranger=readers.bob.token(),
        title="Billing outage",
    )  # fmt: skip


def test_no_form_data_survives_a_sign_out(browse: Browse, readers: People):
    browse("no_form_data_survives_a_sign_out", readers.ann, question=QUESTION, title="Billing outage")


def test_documents_are_listed_without_upload_support(
    browse: Browse, readers: People, stack: Stack, services: Services, no_jobs: None
):
    put(services, readers.ann, "menus", "Menu", MENU)
    long_name = "a-very-long-name-without-any-space-in-it-that-somebody-has-given-to-a-file"
    with run_worker(stack):
        browse(
            "a_library_is_kept",
            readers.ann,
            titles=["Billing outage", "Menu"],
            target="menus",
            remaining="Menu",
            files=[
                {"name": f"{long_name}.pdf", "text": "%PDF-1.7 and nothing that a reader understands"},
                {"name": f"{long_name}.rtf", "text": "{\\rtf1 refused at once}"},
            ],
        )


def test_own_documents_come_first_and_are_found_by_name(browse: Browse, readers: People, services: Services):
    put(services, readers.ann, "zoo", "Visit", MENU)
    put(services, readers.alf, "incidents", "Owners", OWNED)
    browse("own_documents_come_first", readers.ann, titles=["Visit", "Billing outage", "Owners"])


def test_documents_of_equal_titles_show_their_collections(
    browse: Browse, readers: People, services: Services
):
    put(services, readers.ann, "archive", "Billing outage", f"{OUTAGE} It was the second one.")
    browse(
        "equal_titles_show_their_collections", readers.ann, question=QUESTION, title="Billing outage",
        collections=["archive", "incidents"],
    )  # fmt: skip


def test_a_withheld_answer_names_no_writer(
    browse: Browse, readers: People, settings: Settings, gateway: StandIn
):
    with modelled(settings, gateway) as url:
        browse("a_withheld_answer_names_no_writer", readers.ann, url=url, question=UNANSWERABLE)


def test_a_streaming_answer_stays_in_view_unless_the_user_scrolls_away(
    browse: Browse, readers: People, settings: Settings, gateway: StandIn
):
    half = "A line of a long answer.\n" * 60
    reply = streams(half, "Half is written.\n", 1.5, half)
    gateway.replies(streams(half, "Half is written.\n", half), reply)
    with modelled(settings, gateway) as url:
        browse("an_answer_stays_in_view", readers.ann, url=url, question=QUESTION)


def test_markdown_of_passages_is_rendered_safely(browse: Browse, people: People, services: Services):
    put(services, people.ann, "manuals", "Kiln", KILN)
    browse(
        "markdown_is_rendered_safely", people.ann, question="At how many degrees is the kiln fired?",
        quoted="Firing. The kiln is fired at 1,240 degrees for nine hours."
        "See the manual or [this](javascript:globalThis.broken=1).", cases=MARKDOWN,
        hostile=HOSTILE_MARKDOWN,
    )  # fmt: skip


def test_the_numbers_of_a_deep_answer_open_their_documents(
    browse: Browse, readers: People, services: Services
):
    put(services, readers.ann, "incidents", "Owners", f"{OWNED} It keeps the books of both orgs since 2019.")
    browse(
        "a_deep_answer_is_cited",
        readers.ann,
        question="What was the root cause of the billing outage and who owns the Ledger service?",
    )


def test_a_member_of_two_orgs_chooses_the_org(browse: Browse, readers: People, services: Services):
    put(services, readers.bob, "bolt", "Outage elsewhere", OUTAGE.replace("billing", "shipping"))
    browse(
        "a_member_of_two_orgs_chooses", readers.kim, question=QUESTION, orgs=["Acme", "Bolt"],
        titles=["Billing outage", "Outage elsewhere"],
    )  # fmt: skip


def test_titles_and_model_names_are_shown_as_text(
    browse: Browse, people: People, settings: Settings, services: Services, gateway: StandIn
):
    title = f"Billing outage {HOSTILE}"
    put(services, people.ann, "incidents", title, f"{OUTAGE} {HOSTILE}")
    gateway.replies(streams(HOSTILE, " said [", "1]", " and [99]"))
    with modelled(settings, gateway) as url:
        browse(
            "documents_and_models_are_text", people.ann, url=url, question=f"{QUESTION} {HOSTILE}",
            title=title, text=HOSTILE, shown=f"{HOSTILE} said 1 and [99]",
        )  # fmt: skip


def test_a_session_is_reopened_continued_and_deleted(browse: Browse, readers: People):
    browse("a_session_goes_on_and_ends", readers.ann, question=QUESTION, followed="And who fixed it?")


@pytest.mark.long
def test_a_token_that_expires_during_an_answer_is_requested_again(
    browse: Browse, readers: People, settings: Settings, gateway: StandIn, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(jwt_verifier, "LEEWAY_SECONDS", 0)
    gateway.replies(streams("The queue ", 6.0, "was full."), streams("Because."))
    with modelled(settings, gateway) as url:
        browse(
            "a_token_expires_while_an_answer_comes", readers.ann, url=url,
            token=readers.ann.token(exp=int(time.time()) + 6), renewed=readers.ann.token(),
            question=QUESTION, answer="The queue was full.", followed="Why was the queue full?",
        )  # fmt: skip


def test_a_broken_stream_keeps_its_text_and_shows_an_error(
    browse: Browse, readers: People, settings: Settings, gateway: StandIn
):
    gateway.replies(Reply(chunks=encode(piece("The queue")), drop=True))
    with modelled(settings, gateway) as url:
        browse("a_stream_breaks_off", readers.ann, url=url, question=QUESTION, answer="The queue")


def test_a_user_without_an_org_sees_no_empty_library(browse: Browse, people: People):
    browse("a_user_without_an_org_is_told_so", people.sam, message=str(NoOrg()), id=people.sam.id)


def test_invited_users_join_or_decline(browse: Browse, people: People, world: World):
    bolt_admin = world.user(people.bolt, role="admin")
    for admin, user in ((people.ada, people.sam), (bolt_admin, people.sam), (bolt_admin, people.ann)):
        assert admin.post("/v1/members", {"user_id": user.id}).status_code == 204
    browse("invited_users_join_or_decline", people.sam, message=str(NoOrg()), member=people.ann.token())
    statement = (
        "select user_id::text, org_id::text from rag.members where user_id = any (%s::uuid[]) "
        "and accepted_at is not null"
    )
    joined = world.sql(statement, [people.sam.id, people.ann.id])
    acme, bolt = people.acme.id, people.bolt.id
    assert sorted(joined) == sorted([(people.sam.id, acme), (people.ann.id, acme), (people.ann.id, bolt)])
    assert world.sql("select count(*) from rag.members where accepted_at is null") == [(0,)]


def test_a_server_outage_and_its_end_are_shown(browse: Browse, readers: People):
    browse("the_server_is_gone_and_comes_back", readers.ann, question=QUESTION)


def test_many_documents_are_listed_in_pages(browse: Browse, readers: People, world: World):
    crowd(world, readers.ann, 1_000)
    assert readers.ann.org is not None
    # On the first page: the latest document.
    world.sql(
        "update rag.documents set status = 'failed', created_at = now() + interval '1 minute' "
        "where org_id = %s and title = 'Minutes 1'",
        readers.ann.org.id,
    )
    browse("a_long_list_comes_in_pages", readers.ann, count="1,000")


def test_the_page_is_accessible_by_keyboard_and_screen_reader_in_both_colour_schemes(
    browse: Browse, readers: People, services: Services
):
    put(services, readers.ann, "manuals", "Kiln", KILN)
    browse("everybody_can_use_it", readers.ann, question=QUESTION, title="Kiln", axe=str(AXE))


def test_results_begin_at_the_top(browse: Browse, readers: People):
    """Also if the user has scrolled in another tab, or in the results of the question before."""
    browse("results_begin_at_the_top", readers.ann, question="Which service had the billing outage?")


def test_a_recorded_answer_is_rated(browse: Browse, readers: People, world: World):
    browse("an_answer_without_a_record_is_not_rated", readers.ann, question=QUESTION)
    record_requests(readers.ada)
    browse("an_answer_is_rated", readers.ann, question=QUESTION, reason="It names <b>no</b> date.")
    rated = "select rating, reason from rag.request_records where owner_id = %s"
    assert world.sql(rated, readers.ann.id) == [("down", "It names <b>no</b> date.")]
