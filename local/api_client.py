"""The API of a deployment from the command line, as one of its users or keys, with patience."""

import os
from collections.abc import Callable, Iterator
from threading import Event
from typing import Any

import httpx

from local.folder_scan import File, shown
from local.processes import StackError
from local.stack import Stack

Row = dict[str, Any]
# Before the next attempt, in seconds, when the connection was lost or the service is at fault.
PAUSES = (1, 2, 4, 8)
# A limit of a minute is waited for, one of a day is not.
LONGEST_WAIT = 120
# Of a list; the most that the API gives.
PAGE = 100


class Refused(Exception):
    """What the API would not do: the status, a code and a sentence, fit for a terminal."""

    def __init__(self, answer: httpx.Response) -> None:
        try:
            said = answer.json()["error"]
            code, message = str(said["code"]), str(said["message"])
        except (ValueError, KeyError, TypeError):
            code, message = f"http_{answer.status_code}", answer.text[:200]
        super().__init__(shown(message) or answer.reason_phrase)
        self.status = answer.status_code
        self.code = shown(code)
        # Only a limit that passes says when: a tier that is full does not.
        wait = answer.headers.get("Retry-After", "") if self.status in (429, 503) else ""
        self.wait = max(1, int(wait)) if wait.isdecimal() else None


class Deployment:
    """Calls that end with an answer, or say why there is none. For several threads at once."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client
        self._stopped = Event()
        # Told what is waited for, and then "".
        self.say: Callable[[str], object] = lambda text: None

    def stop(self) -> None:
        """Nothing new is asked, and nobody waits any longer."""
        self._stopped.set()

    def request(self, method: str, path: str, **content: Any) -> Any:
        """The answer's JSON. A request whose answer was lost is made again. Raises Refused, or StackError
        where the next request would fare no better."""
        pauses = iter(PAUSES)
        while True:
            answer = self._answer(
                lambda: self._client.request(method, path, **content), str(self._client.base_url), pauses
            )
            if answer.is_success:
                return self._json(answer)
            refused = Refused(answer)
            wait = refused.wait or (next(pauses, None) if refused.status >= 500 else None)
            if refused.status in (401, 403):
                raise StackError(f"{refused.status}: {refused}")
            if wait is None:
                raise refused
            if wait > LONGEST_WAIT:
                raise StackError(f"{refused} The limit is open again in {wait / 3600:.1f} hours.")
            self._rest(wait, str(refused))

    def upload(self, url: str, file: File) -> None:
        """PUT the file where the API said, which takes no credential. Raises Refused, Unreadable, StackError
        where the next would fare no better."""
        # In one piece: of a file that somebody still writes, as much as there is.
        with file.opened() as opened:
            data = opened.read()
        headers = {"Content-Type": "application/octet-stream"}
        pauses = iter(PAUSES)
        while True:
            answer = self._answer(
                lambda: httpx.put(url, content=data, headers=headers, timeout=60),
                "the store of files",
                pauses,
            )
            # An attempt whose answer was lost may have done it.
            if answer.is_success or answer.status_code == 409 or '"409"' in answer.text:
                return
            if answer.status_code < 500 or (pause := next(pauses, None)) is None:
                raise Refused(answer)
            self._rest(pause, "the upload failed")

    def _answer(
        self, send: Callable[[], httpx.Response], where: str, pauses: Iterator[float]
    ) -> httpx.Response:
        """Of whatever status, after a pause for each connection that was lost. Raises StackError where there
        is none, and once nothing new is asked."""
        while not self._stopped.is_set():
            try:
                return send()
            except httpx.UnsupportedProtocol as error:
                raise StackError(f"{where}: {error}") from None
            except httpx.TransportError as error:
                if (pause := next(pauses, None)) is None:
                    raise StackError(f"no connection to {where} ({type(error).__name__})") from None
                self._rest(pause, "the connection was lost")
        raise StackError("stopped")

    def pages(self, path: str, **query: str) -> Iterator[Row]:
        """Every row of a list, the oldest first, so that new ones move no others to another page."""
        query |= {"limit": str(PAGE), "sort_by": "created_at", "order": "asc"}
        more, offset = True, 0
        while more:
            page = self.request("GET", path, params={**query, "offset": str(offset)})
            yield from page["data"]
            more, offset = page["pagination"]["has_more"], offset + PAGE

    def _rest(self, seconds: float, why: str) -> None:
        self.say(f"{why} Again in {seconds:.0f} s.")
        self._stopped.wait(seconds)
        self.say("")

    def _json(self, answer: httpx.Response) -> Any:
        try:
            return answer.json() if answer.content else None
        except ValueError:
            raise StackError(f"{self._client.base_url} does not answer as this API") from None


def client_of(stack: Stack, url: str | None, email: str) -> httpx.Client:
    """Of this stack as its user of that e-mail, or of the deployment at `url` with the token or key in
    RAG_TOKEN. Raises StackError."""
    if not url:
        token = stack.token(email)
    elif "RAG_TOKEN" in os.environ:
        token = os.environ["RAG_TOKEN"]
    else:
        raise StackError("--url takes the owner's token in RAG_TOKEN")
    try:
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.Client(base_url=url or stack.url, headers=headers, timeout=60)
    except httpx.InvalidURL as error:
        raise StackError(f"{url}: {error}") from None
