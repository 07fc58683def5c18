# Generated from aio/ by `make generated`. Do not edit.
"""The client and its resources."""

from types import TracebackType
from typing import Self

import httpx
from pydantic import ValidationError

from mnemosyne import errors
from mnemosyne.config import Settings
from mnemosyne.keys import ApiKey
from mnemosyne.models.administration import AuditEvent, AuditEvents, Health, Org, Orgs, Stats
from mnemosyne.pages import Page
from mnemosyne.requests import Request, query
from mnemosyne.resources.chat import ChatResource
from mnemosyne.resources.collections import CollectionsResource
from mnemosyne.resources.documents import DocumentsResource
from mnemosyne.resources.rag import RagResource
from mnemosyne.resources.records import RecordsResource
from mnemosyne.resources.retrievals import RetrievalsResource
from mnemosyne.resources.search import SearchResource
from mnemosyne.transport import Transport


class Mnemosyne:
    """`api_key`: a key or a user's token, or a function that returns one, asked before each attempt; else
    MNEMOSYNE_API_KEY. `base_url`: else MNEMOSYNE_BASE_URL, else the local stack's. `timeout`: seconds for an
    attempt, by default 60, and 180 for a whole answer of the chat. `max_retries`: how often a request is
    repeated. `http_client`: one of your own, which stays open. Raises ConfigurationError."""

    def __init__(
        self,
        api_key: ApiKey | None = None,
        base_url: str | None = None,
        timeout: float | httpx.Timeout | None = None,
        max_retries: int = 2,
        http_client: httpx.Client | None = None,
    ) -> None:
        self._transport = Transport(Settings.of(api_key, base_url, timeout, max_retries), http_client)
        self.collections = CollectionsResource(self._transport)
        self.documents = DocumentsResource(self._transport)
        self.retrievals = RetrievalsResource(self._transport)
        self.chat = ChatResource(self._transport)
        self.search = SearchResource(self._transport)
        self.rag = RagResource(self._transport)
        self.records = RecordsResource(self._transport)

    @property
    def base_url(self) -> str:
        return self._transport.settings.base_url

    def __repr__(self) -> str:
        return f"{type(self).__name__}(base_url={self.base_url!r})"

    def health(self) -> Health:
        """The health of the API. An unhealthy state is a result, not an error."""
        answer = self._transport.send(Request("GET", "/health", accepted=(503,)))
        try:
            return Health.model_validate_json(answer.content)
        except ValidationError:
            pass
        raise errors.of_response(answer)

    def stats(self) -> Stats:
        """Totals of the caller's orgs. Only for admins, or their keys with the scope admin."""
        return Stats.of(self._transport.send(Request("GET", "/stats")))

    def orgs(self) -> list[Org]:
        """The caller's orgs, by name; for an API key its one org."""
        return Orgs.of(self._transport.send(Request("GET", "/orgs"))).data

    def events(
        self, *, limit: int = 20, offset: int = 0, namespace: str | None = None, event: str | None = None
    ) -> Page[AuditEvent]:
        """A page of at most 100 audit events, the latest first. Only for admins, or their keys with the scope
        admin."""

        def fetch(offset: int) -> Page[AuditEvent]:
            parameters = query(limit=limit, offset=offset, namespace=namespace, event=event)
            events = AuditEvents.of(self._transport.send(Request("GET", "/events", parameters)))
            return Page.of(events.data, events.pagination, fetch)

        return fetch(offset)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._transport.close()
