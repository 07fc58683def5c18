"""Requests on their way: sent, repeated where that is right, and answered or raised."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, NoReturn

import httpx

from mnemosyne import errors, retries
from mnemosyne.config import Settings
from mnemosyne.requests import Request
from mnemosyne.version import __version__


class AsyncTransport:
    def __init__(self, settings: Settings, http_client: httpx.AsyncClient | None) -> None:
        self.settings = settings
        self._own = http_client is None
        self._http = http_client or httpx.AsyncClient()
        self._headers = {
            "Authorization": f"Bearer {settings.api_key}",
            "Accept": "application/json, text/event-stream",
            "User-Agent": f"mnemosyne-python/{__version__}",
        }

    async def aclose(self) -> None:
        """One that was given stays open: it is the giver's."""
        if self._own:
            await self._http.aclose()

    async def send(self, request: Request) -> httpx.Response:
        """The whole answer. Raises an APIError, APIConnectionError or APITimeoutError."""
        return await self._attempts(request, self._whole)

    async def open(self, request: Request) -> httpx.Response:
        """An answer of which the body is still to come; whoever asked closes it. Raises the same."""
        return await self._attempts(request, self._begun)

    async def _attempts(
        self, request: Request, attempt_at: Callable[[Request], Awaitable[httpx.Response]]
    ) -> httpx.Response:
        """A DELETE whose answer got lost may find nothing when it comes again: then it was done. What the API
        keeps no more keys for goes without, since nobody here asked for one."""
        most = self.settings.max_retries if request.tries is None else request.tries - 1
        number, perhaps_done = 0, False
        while True:
            wait: float | None
            try:
                answer = await attempt_at(request)
            except httpx.RequestError as fault:
                wait = retries.wait_after_fault(request, fault, number)
                if wait is None or number >= most:
                    self._raise(fault)
                perhaps_done = perhaps_done or not isinstance(fault, retries.NOT_SENT)
            else:
                if answer.is_success or answer.status_code in request.accepted:
                    return answer
                error = errors.of_response(answer, self.settings.api_key)
                if request.drawn and not perhaps_done and error.code == errors.OUT_OF_KEYS:
                    request = replace(request, idempotency_key=None, drawn=False)
                    continue
                if perhaps_done and request.method == "DELETE" and answer.status_code == 404:
                    return answer
                wait = retries.wait_after_status(request, answer.status_code, error.retry_after, number)
                if wait is None or number >= most:
                    raise error
                perhaps_done = perhaps_done or answer.status_code >= 500
            number += 1
            await asyncio.sleep(wait)

    async def _whole(self, request: Request) -> httpx.Response:
        return await self._http.send(self._built(request), auth=None, follow_redirects=False)

    async def _begun(self, request: Request) -> httpx.Response:
        answer = await self._http.send(self._built(request), stream=True, auth=None, follow_redirects=False)
        if not answer.is_success:
            try:
                await answer.aread()
            finally:
                await answer.aclose()
        return answer

    def _built(self, request: Request) -> httpx.Request:
        """(Neither redirects nor another's idea of auth: the key goes to the base URL, and nothing else.)"""
        more: dict[str, Any] = {"json": request.json} if request.json is not None else {}
        if request.file:
            more = {"data": request.form, "files": {"file": request.file.part()}}
        return self._http.build_request(
            request.method,
            f"{self.settings.base_url}{request.path}",
            params=request.query,
            headers={**self._headers, **_key_of(request)},
            timeout=self.settings.timeout if request.seconds is None else request.seconds,
            **more,
        )

    def _raise(self, fault: httpx.RequestError) -> NoReturn:
        """(Its cause is kept out of it: that would know the headers, and the key among them.)"""
        kind, where = type(fault).__name__, self.settings.base_url
        if isinstance(fault, httpx.TimeoutException):
            raise errors.APITimeoutError(f"{where} did not answer in time ({kind}).") from None
        raise errors.APIConnectionError(f"{where} could not be reached, or broke off ({kind}).") from None


def _key_of(request: Request) -> dict[str, str]:
    return {"Idempotency-Key": request.idempotency_key} if request.idempotency_key else {}
