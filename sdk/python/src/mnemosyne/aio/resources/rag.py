"""Rag contract: search and answers. It takes a user's token, no API key."""

from typing import Any

import httpx

from mnemosyne.aio.names import id_of
from mnemosyne.aio.transport import AsyncTransport
from mnemosyne.models.rag import RagAnswerResponse, RagFilters, RagSearchResponse
from mnemosyne.requests import WHOLE_SECONDS, Request, without_none


class AsyncRagResource:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def search(
        self, query_text: str, *, top_k: int | None = None, filters: RagFilters | None = None
    ) -> RagSearchResponse:
        """The best chunks, 8 unless `top_k` says otherwise, at most 50."""
        return RagSearchResponse.of(await self._post("search", query_text, top_k, filters))

    async def answer(
        self, query_text: str, *, top_k: int | None = None, filters: RagFilters | None = None
    ) -> RagAnswerResponse:
        """An answer with citations; with low confidence only the closest passages."""
        return RagAnswerResponse.of(await self._post("answer", query_text, top_k, filters))

    async def _post(
        self, route: str, query_text: str, top_k: int | None, filters: RagFilters | None
    ) -> httpx.Response:
        fields: dict[str, Any] = without_none(query_text=query_text, top_k=top_k, filters=filters)
        if filters and (org := filters.get("org_id")):
            fields["filters"] = {**filters, "org_id": await id_of(self._transport, "org", org)}
        request = Request(
            "POST",
            f"/api/rag/{route}",
            json=fields,
            repeatable=route == "search",
            default_seconds=WHOLE_SECONDS,
            at_root=True,
        )
        return await self._transport.send(request)
