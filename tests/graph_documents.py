"""Documents whose graph is known, whatever reads texts for names: a service, the team that owns it, and what
else is said of services and teams."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shared.models.embedding_roles import Role
from shared.models.embeddings import embed
from shared.services import Services
from tests.actors import Actor

QUESTION = "Who signs the goals of the team that owns the Billing Service?"
# Whose document says so, and nothing of billing: another document names them together.
TEAM = "Kestrel"


@dataclass(frozen=True)
class NamedText:
    """A chunk: names by their kind, and what it says of them (subject, type, object)."""

    text: str
    names: Mapping[str, str] = field(default_factory=dict)
    relations: Sequence[tuple[str, str, str]] = ()

    def row(self, start: int, embedding: Sequence[float]) -> dict[str, Any]:
        return {
            "span_start": start,
            "span_end": start + len(self.text),
            "token_count": 1,
            "embedding": list(embedding),
            "names": [
                {"name": name, "kind": kind, "surfaces": [name], "weight": 0.8}
                for name, kind in self.names.items()
            ],
            "relations": [
                {"subject": subject, "type": kind, "object": entry, "confidence": 0.9}
                for subject, kind, entry in self.relations
            ],
        }


CHUNKS = {
    "Billing Service": NamedText(
        "It sends invoices at the end of the month, and Kestrel looks after it.",
        {"Kestrel": "team"},
        [("Billing Service", "OWNED_BY", "Kestrel")],
    ),
    TEAM: NamedText(
        "Eleven people in two rooms in Oslo, under Priya Nair.", {"Oslo": "place", "Priya Nair": "person"}
    ),
    "About goals": NamedText("Every team has goals. Who leads the team signs the goals of the team."),
    "About teams": NamedText("A team that owns a service signs for it, and for the service's goals."),
    "About services": NamedText(
        "Every service has a team that owns it. A service without a team is retired."
    ),
    "About billing": NamedText(
        "Billing happens at the end of the month. Who owns billing signs the invoices."
    ),
    "About signing": NamedText("Who signs the goals of a team, or of a service, signs them in blue ink."),
}


def put(
    services: Services,
    actor: Actor,
    title: str,
    *texts: NamedText,
    collection: str = "default",
    **fields: Any,
) -> str:
    """A document with these chunks; its id."""
    assert actor.org is not None
    vectors = embed(services.embedder, [f"{title}\n{chunk.text}" for chunk in texts], Role.DOCUMENT)
    chunks, start = list[dict[str, Any]](), 0
    for chunk, vector in zip(texts, vectors, strict=True):
        chunks.append(chunk.row(start, vector))
        start += len(chunk.text) + 1
    document = {
        "org_id": actor.org.id,
        "title": title,
        "content": "\n".join(chunk.text for chunk in texts),
        "embedding_model": services.embedder.model,
        "collection": collection,
        **fields,
    }
    answer = actor.store({"document": document, "chunks": chunks})
    assert answer.status_code == 200, answer.text
    document_id: str = answer.json()[0]["document_id"]
    return document_id


def put_all(services: Services, actor: Actor, collection: str = "default", **fields: Any) -> dict[str, str]:
    """All of them; their ids by their titles."""
    return {
        title: put(services, actor, title, chunks, collection=collection, **fields)
        for title, chunks in CHUNKS.items()
    }
