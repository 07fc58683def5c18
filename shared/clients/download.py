"""Pages and files from the addresses that people name: bounded in time and size, and never from a network of
ours (ssrf_guard.py)."""

import posixpath
import socket
import zlib
from dataclasses import dataclass, field
from urllib.parse import unquote

import httpx

from shared.clients.http import deadline, http_client
from shared.clients.ssrf_guard import AddressPolicy
from shared.errors import AddressRefused, FetchFailed, UnreadableDocument
from shared.text.normalize import clean_line

# Altogether, redirects included; and for the other side's next word.
SECONDS, SILENCE_SECONDS = 45.0, 10.0
MAX_BYTES = 25 * 1024 * 1024
MAX_REDIRECTS = 5
HEADERS = {
    "User-Agent": "rag-ingest/1",
    "Accept": "text/html, text/markdown, text/plain, application/pdf, */*;q=0.5",
    # Some servers compress all the same.
    "Accept-Encoding": "identity",
}
# Types that servers send for files that they do not know: the name may say more.
UNSPECIFIC_TYPES = {"", "text/plain", "application/octet-stream", "binary/octet-stream"}
# Statuses that another attempt may not have.
BUSY = {408, 425, 429}
# Of a name: there is none, or it has no address. EAI_AGAIN, when no name server answers, may pass.
UNKNOWN_HOST = {socket.EAI_NONAME, socket.EAI_NODATA}


@dataclass(frozen=True, slots=True)
class Fetched:
    """What an address gave. `filename` only where the content type does not say what it is."""

    data: bytes = field(repr=False)
    content_type: str | None
    filename: str | None


def fetch(url: str, networks: AddressPolicy, max_bytes: int | None = None, org_id: str = "") -> Fetched:
    """At most so many bytes, and never more than 25 MB, from an address that the org gave.

    Raises AddressRefused for what nobody is to fetch, UnreadableDocument for what is not there, too large,
    or too slow, FetchFailed for what may be there another time."""
    with (
        deadline(SECONDS),
        http_client(SILENCE_SECONDS, admits=networks.require, org_id=org_id) as client,
    ):
        try:
            for _ in range(MAX_REDIRECTS + 1):
                with client.stream("GET", networks.require_url(url), headers=HEADERS) as answer:
                    if answer.next_request is None:
                        return _fetched(answer, min(MAX_BYTES, max_bytes or MAX_BYTES))
                    url = str(answer.next_request.url)
        except httpx.ReadTimeout as error:
            raise UnreadableDocument("The address takes too long to answer.", code="url_too_slow") from error
        except UnicodeError:
            # Where it leads to is no host's name.
            raise AddressRefused("The address leads to what is no address.") from None
        except (httpx.TransportError, httpx.InvalidURL) as error:
            if _is_unknown_host(error):
                raise UnreadableDocument(
                    "The address names a host that does not exist.", code="url_refused"
                ) from error
            raise FetchFailed from error
    raise UnreadableDocument("The address leads from one to the next and does not end.", code="url_refused")


def _is_unknown_host(error: BaseException | None) -> bool:
    """Whether a name server answered that there is no such name."""
    while error is not None:
        if isinstance(error, socket.gaierror) and error.errno in UNKNOWN_HOST:
            return True
        error = error.__cause__ or error.__context__
    return False


def _fetched(answer: httpx.Response, max_bytes: int) -> Fetched:
    status = answer.status_code
    if status >= 500 or status in BUSY:
        raise FetchFailed(f"The address answers with status {status}.")
    if status != 200:
        raise UnreadableDocument(f"The address answers with status {status}.", code="url_refused")
    data = bytearray()
    for part in answer.iter_raw():
        data += part
        if len(data) > max_bytes:
            raise _too_large(max_bytes)
    content = _unpacked(bytes(data), answer.headers.get("Content-Encoding", ""), max_bytes)
    content_type = clean_line(answer.headers.get("Content-Type", ""))[:255]
    media_type = content_type.partition(";")[0].strip().lower()
    name = posixpath.basename(unquote(answer.url.path)) if media_type in UNSPECIFIC_TYPES else ""
    return Fetched(content, content_type or None, clean_line(name)[-512:] or None)


def _unpacked(data: bytes, encoding: str, max_bytes: int) -> bytes:
    """No further than it may be large: httpx would unpack a few bytes to more than there is memory."""
    match encoding.strip().lower():
        case "" | "identity":
            return data
        case "gzip" | "x-gzip":
            unpacking = zlib.decompressobj(wbits=31)
            try:
                unpacked = unpacking.decompress(data, max_bytes + 1)
            except zlib.error:
                raise UnreadableDocument("What the address gives is broken.") from None
            if len(unpacked) > max_bytes:
                raise _too_large(max_bytes)
            if not unpacking.eof:
                raise UnreadableDocument("What the address gives is broken.")
            return unpacked
        case _:
            raise UnreadableDocument("The address packs what it gives in a way that is not read.")


def _too_large(max_bytes: int) -> UnreadableDocument:
    message = f"What the address gives is larger than {max_bytes:,} bytes."
    return UnreadableDocument(message, code="file_too_large")
