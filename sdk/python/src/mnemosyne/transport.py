# Generated from aio/ by `make generated`. Do not edit.
"""Transport of requests: attempts, retries, responses and errors."""

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx

from mnemosyne import errors, retries
from mnemosyne.clock import Deadline
from mnemosyne.config import THIS_MACHINE, UNUSABLE_PROXY, Settings
from mnemosyne.keys import current
from mnemosyne.requests import Request
from mnemosyne.uploads import Progress, Upload
from mnemosyne.version import __version__

STREAM = "text/event-stream"
# The last write of this client, which its searches see also on a read replica.
READ_AFTER = "X-Rag-Read-After"
HEADERS = {
    "Accept": f"application/json, {STREAM}",
    "User-Agent": f"mnemosyne-python/{__version__}",
}


class Transport:
    def __init__(self, settings: Settings, http_client: httpx.Client | None) -> None:
        self.settings = settings
        self._own = http_client is None
        self._read_after = 0
        self._http = http_client or _own_client(settings)

    def close(self) -> None:
        """Close the HTTP client, unless the caller gave it."""
        if self._own:
            self._http.close()

    def send(self, request: Request) -> httpx.Response:
        """The whole response. Raises an APIError, APIConnectionError or APITimeoutError."""
        return self._attempts(request, is_whole=True)

    def open(self, request: Request) -> httpx.Response:
        """A stream before its first part; the caller closes it. Raises the same errors."""
        answer = self._attempts(request, is_whole=False)
        if answer.headers.get("content-type", "").partition(";")[0].strip().lower() != STREAM:
            answer.close()
            raise errors.unexpected(answer, "The response is not a stream of this API. Check base_url.")
        return answer

    def put(self, url: str, upload: Upload, on_progress: Progress | None) -> None:
        """Send a file to a signed URL of Storage, without the key and without the defaults (headers, cookies)
        of the HTTP client. Raises UploadFailedError, APIConnectionError or APITimeoutError."""

        def content() -> Iterator[bytes]:
            sent = 0
            for piece in upload.pieces():
                yield piece
                sent += len(piece)
                if on_progress:
                    on_progress(sent, size)

        size, fault = upload.size, None
        headers = {"Content-Length": str(size), "Content-Type": upload.content_type, **HEADERS}
        timeout = self.settings.timeout_for(None, None).as_dict()
        request = httpx.Request(
            "PUT", url, content=content(), headers=headers, extensions={"timeout": timeout}
        )
        try:
            answer = self._http.send(request, auth=None, follow_redirects=False)
        except httpx.RequestError as error:
            fault = _error(error, f"Storage at {request.url.scheme}://{request.url.netloc.decode()}")
        # (Raised outside of the except clause: the caught error has the URL, which is a credential.)
        if fault:
            raise fault
        if not answer.is_success:
            raise errors.of_storage(answer)

    def _attempts(self, request: Request, *, is_whole: bool) -> httpx.Response:
        """After a DELETE with a lost response, a 404 means that it succeeded. When the API stores no more
        idempotency keys, a request with a generated key is sent without one."""
        most = self.settings.max_retries if request.tries is None else request.tries - 1
        number, perhaps_done = 0, False
        while True:
            wait: float | None
            error: errors.MnemosyneError
            answer = self._attempt(request, is_whole)
            # (Raised outside of an except clause: the caught error, with the key, would be its context.)
            if isinstance(answer, httpx.RequestError):
                error = _error(answer, self.settings.base_url)
                wait = retries.wait_after_fault(request, answer, number)
                may_be_done = not isinstance(answer, retries.NOT_SENT)
            else:
                if answer.is_success or answer.status_code in request.accepted:
                    return answer
                error = errors.of_response(answer)
                if request.has_generated_key and not perhaps_done and error.code == errors.OUT_OF_KEYS:
                    request = replace(request, idempotency_key=None, has_generated_key=False)
                    continue
                if perhaps_done and request.method == "DELETE" and answer.status_code == 404:
                    return answer
                wait = retries.wait_after_status(request, answer.status_code, error.retry_after, number)
                may_be_done = answer.status_code >= 500
            if wait is None or number >= most:
                raise error
            perhaps_done = perhaps_done or may_be_done
            number += 1
            time.sleep(wait)

    def _attempt(self, request: Request, is_whole: bool) -> httpx.Response | httpx.RequestError:
        """One attempt. An error is returned, not raised."""
        timeout = self.settings.timeout_for(request.seconds, request.default_seconds)
        key = self._key(timeout)
        try:
            with Deadline(timeout.read) as deadline:
                answer = self._http.send(
                    self._built(request, key, timeout), stream=True, auth=None, follow_redirects=False
                )
                if is_whole or not answer.is_success:
                    deadline.read(answer)
        except httpx.RequestError as fault:
            return fault
        if (written := answer.headers.get(READ_AFTER, "")).isdecimal():
            self._read_after = max(self._read_after, int(written))
        return answer

    def _key(self, timeout: httpx.Timeout) -> str:
        """The API key, within the deadline of the attempt, since a function that renews the key may hang."""
        try:
            with Deadline(timeout.read):
                return current(self.settings.api_key)
        except retries.Late:
            pass
        raise errors.APITimeoutError(
            "The function api_key returned no key in time. Make it faster, or raise timeout."
        )

    def _built(self, request: Request, key: str, timeout: httpx.Timeout) -> httpx.Request:
        """(Neither redirects nor another's idea of auth: the key goes to the base URL, and nothing else.)"""
        more: dict[str, Any] = {"json": request.json} if request.json is not None else {}
        if request.file:
            more = {"data": request.form, "files": {"file": request.file.part()}}
        headers = {"Authorization": f"Bearer {key}", **HEADERS}
        if self._read_after:
            headers[READ_AFTER] = str(self._read_after)
        if request.idempotency_key:
            headers["Idempotency-Key"] = request.idempotency_key
        return self._http.build_request(
            request.method,
            f"{self.settings.root_url if request.at_root else self.settings.base_url}{request.path}",
            params=request.query,
            headers=headers,
            timeout=timeout,
            **more,
        )


def _own_client(settings: Settings) -> httpx.Client:
    """No proxy of the environment leads to this machine. Raises ConfigurationError for one that httpx does
    not support."""
    try:
        return httpx.Client(mounts=dict.fromkeys(THIS_MACHINE))
    except (ImportError, ValueError, httpx.InvalidURL):
        if settings.is_local:
            return httpx.Client(trust_env=False)
        raise errors.ConfigurationError(UNUSABLE_PROXY) from None


def _error(fault: httpx.RequestError, where: str) -> errors.APIConnectionError:
    kind = type(fault).__name__
    if isinstance(fault, httpx.TimeoutException):
        return errors.APITimeoutError(
            f"{where} did not answer in time ({kind}). Try again, or raise timeout."
        )
    return errors.APIConnectionError(
        f"{where} could not be reached, or broke off ({kind}). Check the address, or try again."
    )
