"""The client and its resources."""

from types import TracebackType
from typing import Self

import httpx
from pydantic import ValidationError

from mnemosyne import errors
from mnemosyne.aio.keys import AsyncApiKey
from mnemosyne.aio.pages import AsyncPage
from mnemosyne.aio.resources.chat import AsyncChatResource
from mnemosyne.aio.resources.collections import AsyncCollectionsResource
from mnemosyne.aio.resources.documents import AsyncDocumentsResource
from mnemosyne.aio.resources.rag import AsyncRagResource
from mnemosyne.aio.resources.records import AsyncRecordsResource
from mnemosyne.aio.resources.retrievals import AsyncRetrievalsResource
from mnemosyne.aio.resources.search import AsyncSearchResource
from mnemosyne.aio.transport import AsyncTransport
from mnemosyne.config import Settings
from mnemosyne.models.administration import AuditEvent, AuditEvents, Health, Org, Orgs, Stats
from mnemosyne.requests import Request, query


class AsyncMnemosyne:
    """`api_key`: a key or a user's token, or a function that returns one, asked before each attempt; else
    MNEMOSYNE_API_KEY. `base_url`: else MNEMOSYNE_BASE_URL, else the local stack's. `timeout`: seconds for an
    attempt, by default 60, and 180 for a whole answer of the chat. `max_retries`: how often a request is
    repeated. `http_client`: one of your own, which stays open. Raises ConfigurationError."""

    def __init__(
        self,
        api_key: AsyncApiKey | None = None,
        base_url: str | None = None,
        timeout: float | httpx.Timeout | None = None,
        max_retries: int = 2,
        http_client: httpx.AsyncClient | None = None,
    ) -> None:
        self._transport = AsyncTransport(Settings.of(api_key, base_url, timeout, max_retries), http_client)
        self.collections = AsyncCollectionsResource(self._transport)
        self.documents = AsyncDocumentsResource(self._transport)
        self.retrievals = AsyncRetrievalsResource(self._transport)
        self.chat = AsyncChatResource(self._transport)
        self.search = AsyncSearchResource(self._transport)
        self.rag = AsyncRagResource(self._transport)
        self.records = AsyncRecordsResource(self._transport)

    @property
    def base_url(self) -> str:
        return self._transport.settings.base_url

    def __repr__(self) -> str:
        return f"{type(self).__name__}(base_url={self.base_url!r})"

    async def health(self) -> Health:
        """The health of the API. An unhealthy state is a result, not an error."""
        answer = await self._transport.send(Request("GET", "/health", accepted=(503,)))
        try:
            return Health.model_validate_json(answer.content)
        except ValidationError:
            pass
        raise errors.of_response(answer)

    async def stats(self) -> Stats:
        """Totals of the caller's orgs. Only for admins, or their keys with the scope admin."""
        return Stats.of(await self._transport.send(Request("GET", "/stats")))

    async def orgs(self) -> list[Org]:
        """The caller's orgs, by name; for an API key its one org."""
        return Orgs.of(await self._transport.send(Request("GET", "/orgs"))).data

    async def events(
        self, *, limit: int = 20, offset: int = 0, namespace: str | None = None, event: str | None = None
    ) -> AsyncPage[AuditEvent]:
        """A page of at most 100 audit events, the latest first. Only for admins, or their keys with the scope
        admin."""

        async def fetch(offset: int) -> AsyncPage[AuditEvent]:
            parameters = query(limit=limit, offset=offset, namespace=namespace, event=event)
            events = AuditEvents.of(await self._transport.send(Request("GET", "/events", parameters)))
            return AsyncPage.of(events.data, events.pagination, fetch)

        return await fetch(offset)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._transport.aclose()
