# Generated from aio/ by `make generated`. Do not edit.
"""Search contract: explained search, contents, similar texts, and answers whose sentences are checked."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, Unpack, overload

from mnemosyne import errors
from mnemosyne.answers import answer_event, camel
from mnemosyne.models.search import (
    AnswerEvent,
    AnswerOptions,
    AnswerResponse,
    ContentsOptions,
    ContentsResponse,
    Reference,
    SearchOptions,
    SearchResponse,
    SimilarOptions,
    SimilarResponse,
    Subject,
)
from mnemosyne.names import id_of
from mnemosyne.requests import WHOLE_SECONDS, Request, checked_key
from mnemosyne.streaming import Stream
from mnemosyne.transport import Transport


class SearchResource:
    """Each call searches the collection `collection_id`, or with `scope="org"` the org `org_id`; both may be
    names. Omitted options have the API's defaults."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def search(self, q: str, **options: Unpack[SearchOptions]) -> SearchResponse:
        """Ranked chunks with highlights, and the reasons of the router with `include={"rationale": True}`."""
        return SearchResponse.of(self._transport.send(self._request("search", options, q=q)))

    def similar(self, subject: Subject, **options: Unpack[SimilarOptions]) -> SimilarResponse:
        """Chunks or documents like a text, a chunk or a document. Raises NotFoundError for an unknown one."""
        request = self._request("similar", options, subject=subject)
        return SimilarResponse.of(self._transport.send(request))

    def contents(self, ids: Iterable[Reference], **options: Unpack[ContentsOptions]) -> ContentsResponse:
        """At most 100 documents and chunks by their ids."""
        request = self._request("contents", options, ids=list(ids))
        return ContentsResponse.of(self._transport.send(request))

    @overload
    def answer(
        self,
        question: str,
        *,
        stream: Literal[False] = False,
        idempotency_key: str | None = None,
        **options: Unpack[AnswerOptions],
    ) -> AnswerResponse: ...

    @overload
    def answer(
        self,
        question: str,
        *,
        stream: Literal[True],
        idempotency_key: str | None = None,
        **options: Unpack[AnswerOptions],
    ) -> Stream[AnswerEvent]: ...

    def answer(
        self,
        question: str,
        *,
        stream: bool = False,
        idempotency_key: str | None = None,
        **options: Unpack[AnswerOptions],
    ) -> AnswerResponse | Stream[AnswerEvent]:
        """An answer in which every sentence is checked. With an `idempotency_key` a repeated call within a
        day returns the first answer; without, a request is repeated only if the API did nothing."""
        request = self._request(
            "answer", options, idempotency_key, question=question, **({"stream": True} if stream else {})
        )
        if not stream:
            return AnswerResponse.of(self._transport.send(request))
        answer = self._transport.open(request)
        secret, request_id = errors.secret_of(answer), errors.request_id(answer)
        return Stream(
            answer,
            lambda name, data: answer_event(name, data, secret, request_id),
            lambda event: event.type == "final",
        )

    def _request(
        self, route: str, options: Mapping[str, Any], key: str | None = None, **fields: Any
    ) -> Request:
        body = {**options, **fields}
        if collection_id := body.pop("collection_id", None):
            body["workspace_id"] = id_of(self._transport, "collection", collection_id)
        if org_id := body.pop("org_id", None):
            body["organization_id"] = id_of(self._transport, "org", org_id)
        return Request(
            "POST",
            f"/v1/{route}",
            json=camel(body),
            repeatable=route != "answer",
            idempotency_key=checked_key(key),
            default_seconds=WHOLE_SECONDS,
            at_root=True,
        )
