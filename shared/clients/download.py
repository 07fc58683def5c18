"""Download of pages and files from users' URLs, bounded in time and size.

ssrf_guard.py refuses internal networks."""

import posixpath
import socket
import zlib
from dataclasses import dataclass, field
from math import ceil
from urllib.parse import unquote

import httpx

from shared.clients.http_client import deadline, http_client, http_transport, read_at_most, retry_after
from shared.clients.ssrf_guard import AddressPolicy
from shared.errors import AddressRefused, FetchFailed, UnreadableDocument
from shared.text.normalize import clean_line

# Time limits of the whole download, redirects included, and of each read.
SECONDS, READ_SECONDS = 45.0, 10.0
MAX_BYTES = 25 * 1024 * 1024
MAX_REDIRECTS = 5
HEADERS = {
    "Accept": "text/html, text/markdown, text/plain, application/pdf, */*;q=0.5",
    # Some servers compress nevertheless.
    "Accept-Encoding": "identity",
}
UPLOAD_INSTEAD = "Download the file yourself, and upload it."
# Types that servers send for unknown files: the file name may tell more.
GENERIC_TYPES = {"", "text/plain", "application/octet-stream", "binary/octet-stream"}
# Statuses below 500 after which another attempt may succeed.
RETRYABLE = {408, 425, 429}
# Statuses of a server that is busy, and the pause if it names none, in seconds.
BUSY, BUSY_SECONDS = {429, 503}, 5
# Statuses of addresses that do not exist, or no longer.
GONE = {404, 410}
NOT_MODIFIED = 304
# Header of a response that states its version, and that of a request for any other version.
VALIDATORS = {"ETag": "If-None-Match", "Last-Modified": "If-Modified-Since"}
MAX_VERSION = 500
# The name does not exist, or has no address. (EAI_AGAIN means that no name server answered.)
UNKNOWN_HOST = {socket.EAI_NONAME, socket.EAI_NODATA}


@dataclass(frozen=True, slots=True)
class Download:
    """The content of a URL. `filename` is None where the content type tells the format. `url` is the URL
    after redirects. `version` is the header that states the version of the content, with its name. `robots`
    are the values of the headers X-Robots-Tag."""

    data: bytes = field(repr=False)
    content_type: str | None
    filename: str | None
    url: str
    version: str | None
    robots: tuple[str, ...] = ()


class AddressGone(UnreadableDocument, code="url_refused"):
    """The address does not exist. Check it."""


def fetch(
    url: str,
    networks: AddressPolicy,
    max_bytes: int | None = None,
    org_id: str = "",
    *,
    same_host: bool = False,
) -> Download:
    """Download at most `max_bytes`, and never more than 25 MB, from a URL that the org gave. `same_host`:
    without redirects to other hosts, and from https to http.

    Raises AddressRefused for an address that is not allowed, UnreadableDocument for content that is missing,
    too large or too slow, and FetchFailed where another attempt may succeed."""
    download = _fetch(url, networks, max_bytes, org_id, HEADERS, same_host=same_host)
    if download is None:
        raise FetchFailed
    return download


def fetch_if_changed(
    url: str, networks: AddressPolicy, max_bytes: int | None, org_id: str, known_version: str | None
) -> Download | None:
    """As `fetch`, without redirects to other hosts; None if the content still has the known version."""
    name, _, value = (known_version or "").partition(": ")
    conditions = {VALIDATORS[name]: value} if name in VALIDATORS else {}
    return _fetch(url, networks, max_bytes, org_id, HEADERS | conditions, same_host=True)


def _fetch(
    url: str,
    networks: AddressPolicy,
    max_bytes: int | None,
    org_id: str,
    headers: dict[str, str],
    *,
    same_host: bool,
) -> Download | None:
    transport = http_transport(admits=networks.require, org_id=org_id)
    with deadline(SECONDS), http_client(READ_SECONDS, transport) as client:
        try:
            for _ in range(MAX_REDIRECTS + 1):
                with client.stream("GET", networks.require_url(url), headers=headers) as response:
                    if response.status_code == NOT_MODIFIED:
                        return None
                    if response.next_request is None:
                        return _read(response, min(MAX_BYTES, max_bytes or MAX_BYTES))
                    target = response.next_request.url
                    if same_host and target.netloc != response.url.netloc:
                        raise AddressRefused(
                            "The address redirects to another host. Send the address that it redirects to."
                        )
                    if same_host and response.url.scheme == "https" and target.scheme != "https":
                        raise AddressRefused(
                            "The address redirects from https to http. Send an https address."
                        )
                    url = str(target)
        except httpx.ReadTimeout as error:
            message = f"The address takes too long to answer. {UPLOAD_INSTEAD}"
            raise UnreadableDocument(message, code="url_too_slow") from error
        except UnicodeError:
            # The target of a redirect is invalid.
            raise AddressRefused(
                "The address redirects to an invalid address. Send the final address."
            ) from None
        except (httpx.TransportError, httpx.InvalidURL) as error:
            if _is_unknown_host(error):
                raise UnreadableDocument(
                    "The address names a host that does not exist. Check its spelling.", code="url_refused"
                ) from error
            raise FetchFailed from error
    raise UnreadableDocument("The address redirects too often. Send the final address.", code="url_refused")


def _is_unknown_host(error: BaseException | None) -> bool:
    """Whether a name server answered that the name does not exist."""
    while error is not None:
        if isinstance(error, socket.gaierror) and error.errno in UNKNOWN_HOST:
            return True
        error = error.__cause__ or error.__context__
    return False


def _read(response: httpx.Response, max_bytes: int) -> Download:
    status = response.status_code
    if status >= 500 or status in RETRYABLE:
        seconds = retry_after(response.headers) or (BUSY_SECONDS if status == 429 else None)
        raise FetchFailed(
            f"The address answers with status {status}. Please try again later.",
            headers={"Retry-After": str(ceil(seconds))} if status in BUSY and seconds else None,
        )
    if status in GONE:
        raise AddressGone(f"The address answers with status {status}: it does not exist. Check it.")
    if status != 200:
        message = f"The address answers with status {status}. Check that it opens without a login."
        raise UnreadableDocument(message, code="url_refused")
    data = read_at_most(max_bytes, response.iter_raw())
    if data is None:
        raise _too_large(max_bytes)
    content = _decompressed(data, response.headers.get("Content-Encoding", ""), max_bytes)
    content_type = clean_line(response.headers.get("Content-Type", ""))[:255]
    media_type = content_type.partition(";")[0].strip().lower()
    name = posixpath.basename(unquote(response.url.path)) if media_type in GENERIC_TYPES else ""
    return Download(
        content,
        content_type or None,
        clean_line(name)[-512:] or None,
        str(response.url),
        _version(response),
        tuple(response.headers.get_list("X-Robots-Tag")),
    )


def _version(response: httpx.Response) -> str | None:
    for name in VALIDATORS:
        if (value := response.headers.get(name)) and len(version := f"{name}: {value}") <= MAX_VERSION:
            return clean_line(version)
    return None


def _decompressed(data: bytes, encoding: str, max_bytes: int) -> bytes:
    """httpx would decompress without a bound: a few bytes may become more than the memory holds."""
    match encoding.strip().lower():
        case "" | "identity":
            return data
        case "gzip" | "x-gzip":
            gzip = zlib.decompressobj(wbits=31)
            try:
                content = gzip.decompress(data, max_bytes + 1)
            except zlib.error:
                raise UnreadableDocument(f"The address sends a broken file. {UPLOAD_INSTEAD}") from None
            if len(content) > max_bytes:
                raise _too_large(max_bytes)
            if not gzip.eof:
                raise UnreadableDocument(f"The address sends a broken file. {UPLOAD_INSTEAD}")
            return content
        case _:
            raise UnreadableDocument(
                f"The address compresses the file in an unsupported way. {UPLOAD_INSTEAD}"
            )


def _too_large(max_bytes: int) -> UnreadableDocument:
    message = f"The file at the address is larger than {max_bytes:,} bytes. Divide it, and upload the parts."
    return UnreadableDocument(message, code="file_too_large")
