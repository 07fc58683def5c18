"""What the attacks are made on: three secrets of three owners, and the doors that lead to them."""

import re
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from shared.ingestion.synchronous_ingestion import NewDocument
from shared.models.embedding_roles import Role
from shared.models.embeddings import embed
from shared.services import Services
from tests.actors import Actor
from tests.conftest import People
from tests.ingestion import ingest

QUESTION = "What is the code of the vault door?"
SECRETS = {"acme": "ACME-4417", "bolt": "BOLT-9052", "ann": "ANN-7731"}

HTTP_ROUTES = ["/api/rag/search", "/api/rag/answer"]
ALIASES = ["/functions/v1/rag-search", "/functions/v1/rag-answer"]
MATCH = "/rest/v1/rpc/rag_match"
ENTRY_POINTS = [*HTTP_ROUTES, MATCH]
every_route = pytest.mark.parametrize("route", ENTRY_POINTS)
every_http_route = pytest.mark.parametrize("route", HTTP_ROUTES)

# What an error of the HTTP endpoints never says: SQL and its errors, our tables, our code, a token.
INTERNALS = re.compile(
    r"\bselect\b|\binsert\b|\bupdate\b|\brelation\b|\bcolumn\b|\bpolicy\b|\bpermission denied\b|sqlstate|"
    r"PGRST|PT4\d\d|\brag[._]|\bpublic\.|postgres|postgrest|psycopg|httpx|Traceback|File \"|\.py\b|eyJ",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Library:
    """One secret each: of the org Acme, of the org Bolt, and ann's own, which is private in Acme."""

    services: Services
    client: httpx.Client
    people: People
    acme_document: str
    bolt_document: str
    ann_document: str

    @property
    def needle(self) -> list[float]:
        return embed(self.services.embedder, [QUESTION], Role.QUESTION)[0]

    def ask(self, route: str, headers: dict[str, str], **filters: Any) -> httpx.Response:
        """The question at that door, by the caller of the headers."""
        body: dict[str, Any] = {"query_text": QUESTION, "top_k": 50, "filters": filters}
        if route == MATCH:
            model = {"model": self.services.embedder.model, **filters}
            body = {"query_vector": self.needle, "top_k": 50, "filters": model}
        return self.client.post(route, json=body, headers=headers)

    def secrets(self, route: str, actor: Actor, token: str | None = None, **filters: Any) -> set[str]:
        """Whose secrets this user finds at that door."""
        return secrets_in(self.ask(route, actor.headers(token), **filters))

    def is_unchanged(self) -> bool:
        """Whether all users still find their first results."""
        return (
            self.secrets(MATCH, self.people.ann) == {"acme", "ann"}
            and self.secrets(MATCH, self.people.alf) == {"acme"}
            and self.secrets(MATCH, self.people.bob) == {"bolt"}
        )


def secrets_in(answer: httpx.Response) -> set[str]:
    """Whose secrets the answer has: none in the refusal of a caller without an org."""
    assert answer.status_code == 200 or (answer.status_code == 403 and "no_org" in answer.text), answer.text
    return {whose for whose, secret in SECRETS.items() if secret in answer.text}


def store(services: Services, actor: Actor, secret: str, collection: str = "default", **fields: Any) -> str:
    """A document that answers the question with that secret; its id."""
    assert actor.org is not None
    text = f"The code of the vault door is {secret}. Nobody else may know the code of the vault door."
    document = NewDocument(title="The vault door", text=text, **fields)
    return ingest(services.database, services.embedder, actor.principal, document, collection).document_id


def assert_tells_nothing(answer: httpx.Response, library: Library, asker: Actor | None = None) -> None:
    """Nothing of documents, of other orgs, of tokens or keys, and no stack trace."""
    people = library.people
    own = asker.org.id if asker and asker.org else None
    hidden = [library.acme_document, library.bolt_document, library.ann_document, *SECRETS.values()]
    hidden += [org.id for org in (people.acme, people.bolt) if org.id != own]
    hidden += ["vault", "eyJ", "Traceback", 'File "', people.ann.stack.state.jwt_secret]
    hidden += [people.ann.stack.state.password]
    assert [text for text in hidden if text in answer.text] == []


def assert_refused(answer: httpx.Response, status: int, library: Library) -> None:
    """An error in the rag contract's envelope that helps and tells nothing."""
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert set(body) == {"status", "error"}
    assert set(body["error"]) == {"code", "message"}
    assert body["status"] == "error"
    assert not INTERNALS.search(answer.text), answer.text
    assert_tells_nothing(answer, library)
