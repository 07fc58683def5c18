# Generated from aio/ by `make generated`. Do not edit.
"""Rag contract: search and answers. It takes a user's token, no API key."""

from typing import Any

import httpx

from mnemosyne.models.rag import RagAnswerResponse, RagFilters, RagSearchResponse
from mnemosyne.names import id_of
from mnemosyne.requests import WHOLE_SECONDS, Request, without_none
from mnemosyne.transport import Transport


class RagResource:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def search(
        self, query_text: str, *, top_k: int | None = None, filters: RagFilters | None = None
    ) -> RagSearchResponse:
        """The best chunks, 8 unless `top_k` says otherwise, at most 50."""
        return RagSearchResponse.of(self._post("search", query_text, top_k, filters))

    def answer(
        self, query_text: str, *, top_k: int | None = None, filters: RagFilters | None = None
    ) -> RagAnswerResponse:
        """An answer with citations; with low confidence only the closest passages."""
        return RagAnswerResponse.of(self._post("answer", query_text, top_k, filters))

    def _post(
        self, route: str, query_text: str, top_k: int | None, filters: RagFilters | None
    ) -> httpx.Response:
        fields: dict[str, Any] = without_none(query_text=query_text, top_k=top_k, filters=filters)
        if filters and (org := filters.get("org_id")):
            fields["filters"] = {**filters, "org_id": id_of(self._transport, "org", org)}
        request = Request(
            "POST",
            f"/api/rag/{route}",
            json=fields,
            repeatable=route == "search",
            default_seconds=WHOLE_SECONDS,
            at_root=True,
        )
        return self._transport.send(request)
