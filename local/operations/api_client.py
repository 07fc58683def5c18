"""HTTP client with retries for a deployment's API: as a user or an API key."""

from collections.abc import Callable, Iterator
from functools import partial
from threading import Event
from typing import Any

import httpx

from local.errors import CommandError
from local.operations.folder_scan import File, one_line
from shared.clients.http_client import http_client as service_client
from shared.clients.http_client import http_transport

Row = dict[str, Any]
# Seconds before each retry after a lost connection or a 5xx.
RETRY_DELAYS = (1, 2, 4, 8)
# Seconds. A rate limit per minute is waited for, a limit per day is not.
MAX_RETRY_AFTER = 120
# Rows of a page of a list; the API's maximum.
PAGE_SIZE = 100


class ApiError(CommandError):
    """An error response: status, code and message, without terminal control characters."""

    def __init__(self, response: httpx.Response) -> None:
        try:
            error = response.json()["error"]
            code, message = str(error["code"]), str(error["message"])
        except (ValueError, KeyError, TypeError):
            code, message = f"http_{response.status_code}", response.text[:200]
        super().__init__(one_line(message) or response.reason_phrase)
        self.status = response.status_code
        self.code = one_line(code)
        # Only a temporary limit has Retry-After; an exhausted quota has none.
        wait = response.headers.get("Retry-After", "") if self.status in (429, 503) else ""
        self.wait = max(1, int(wait)) if wait.isdecimal() else None


class ApiClient:
    """Calls to the API with retries. Thread-safe."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client
        self._stopped = Event()
        # Called with the reason before a wait, and with "" after it.
        self.on_wait: Callable[[str], object] = lambda text: None

    def stop(self) -> None:
        """Send no further request and end all waits."""
        self._stopped.set()

    def request(self, method: str, path: str, **content: Any) -> Any:
        """The response's JSON. A request whose response was lost is sent again. Raises ApiError, or
        CommandError when every further request would fail as well."""
        delays = iter(RETRY_DELAYS)
        while True:
            response = self._send(
                lambda: self._client.request(method, path, **content), str(self._client.base_url), delays
            )
            if response.is_success:
                return self._json(response)
            api_error = ApiError(response)
            wait = api_error.wait or (next(delays, None) if api_error.status >= 500 else None)
            if api_error.status in (401, 403):
                raise CommandError(f"{api_error.status}: {api_error}")
            if wait is None:
                raise api_error
            if wait > MAX_RETRY_AFTER:
                raise CommandError(f"{api_error} The limit is open again in {wait / 3600:.1f} hours.")
            self._pause(wait, str(api_error))

    def upload(self, url: str, file: File) -> None:
        """PUT the file to the signed URL, without credentials. Raises ApiError, UnreadableFile, or
        CommandError when every further upload would fail as well."""
        # Read at once: the file may still be written to.
        with file.open() as opened:
            data = opened.read()
        headers = {"Content-Type": "application/octet-stream"}
        delays = iter(RETRY_DELAYS)
        while True:
            response = self._send(
                partial(_put, url, content=data, headers=headers),
                "the file storage",
                delays,
            )
            # 409: an attempt whose response was lost has stored the file.
            if response.is_success or response.status_code == 409 or '"409"' in response.text:
                return
            if response.status_code < 500 or (delay := next(delays, None)) is None:
                raise ApiError(response)
            self._pause(delay, "the upload failed")

    def _send(
        self, send: Callable[[], httpx.Response], where: str, delays: Iterator[float]
    ) -> httpx.Response:
        """The response of any status, with a pause after each lost connection. Raises CommandError without a
        connection or after `stop`."""
        while not self._stopped.is_set():
            try:
                return send()
            except httpx.UnsupportedProtocol as error:
                raise CommandError(f"{where}: {error}") from None
            except httpx.TransportError as error:
                if (delay := next(delays, None)) is None:
                    raise CommandError(
                        f"no connection to {where} ({type(error).__name__}); check its address"
                    ) from None
                self._pause(delay, "the connection was lost")
        raise CommandError("stopped")

    def pages(self, path: str, **query: str) -> Iterator[Row]:
        """Every row of a list, oldest first: new rows do not shift the others to another page."""
        query |= {"limit": str(PAGE_SIZE), "sort_by": "created_at", "order": "asc"}
        more, offset = True, 0
        while more:
            page = self.request("GET", path, params={**query, "offset": str(offset)})
            yield from page["data"]
            more, offset = page["pagination"]["has_more"], offset + PAGE_SIZE

    def _pause(self, seconds: float, why: str) -> None:
        self.on_wait(f"{why} Again in {seconds:.0f} s.")
        self._stopped.wait(seconds)
        self.on_wait("")

    def _json(self, response: httpx.Response) -> Any:
        try:
            return response.json() if response.content else None
        except ValueError:
            raise CommandError(
                f"{self._client.base_url} does not answer like this API; check --url"
            ) from None


def _put(url: str, **content: Any) -> httpx.Response:
    with service_client(60) as client:
        return client.put(url, **content)


def http_client(url: str, credential: str) -> httpx.Client:
    """A client for the deployment at `url` with a token or an API key. Raises CommandError."""
    try:
        headers = {"Authorization": f"Bearer {credential}"}
        return httpx.Client(base_url=url, headers=headers, timeout=60, transport=http_transport())
    except httpx.InvalidURL as error:
        raise CommandError(f"{url}: {error}") from None
