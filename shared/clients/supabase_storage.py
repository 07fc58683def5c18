"""Client of Supabase Storage, which calls it as the caller.

Storage applies row security on storage.objects to each call (sql/40_storage). Its responses carry tokens:
neither responses nor URLs get into errors or logs.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import httpx

from shared.clients.http_client import deadline, http_client, http_transport, read_at_most
from shared.errors import NotFound, StorageFailed, UnreadableDocument
from shared.types import Principal

SECONDS = 10.0
# Limits of the download of one object. The worker and the parser hold it in memory.
DOWNLOAD_SECONDS = 45.0
MAX_BYTES = 100 * 1024 * 1024
# Lifetime of a download link.
LINK_SECONDS = 60


class Storage:
    """The objects of one bucket. Safe to use from many threads. All methods raise StorageFailed when Storage
    cannot answer."""

    def __init__(self, supabase_url: str, anon_key: str, bucket: str) -> None:
        self._address = f"{supabase_url}/storage/v1"
        self._anon_key = anon_key
        self._bucket = bucket
        limits = httpx.Limits(max_connections=32, max_keepalive_connections=8)
        self._client = http_client(SECONDS, http_transport(limits))
        self._client.event_hooks = {"response": [_require_success]}

    def upload_link(self, caller: Principal, path: str) -> str:
        """The URL to which its holder may PUT the object."""
        with self._as(caller) as bucket:
            return self._checked(bucket.create_signed_upload_url(path)["signed_url"])

    def download_link(self, caller: Principal, path: str, filename: str) -> str:
        """The URL from which its holder may fetch the object for a minute, as a file of that name. Raises
        NotFound."""
        with self._as(caller) as bucket:
            link = self._checked(bucket.create_signed_url(path, LINK_SECONDS)["signedURL"])
        # storage3 would leave slashes in the name.
        return f"{link}&download={quote(filename, safe='')}"

    def size_of(self, caller: Principal, path: str) -> int:
        """In bytes. Raises NotFound, also for an object that the caller may not see."""
        with self._as(caller) as bucket:
            size = bucket.info(path)["size"]
        if type(size) is not int:
            raise StorageFailed(log_reason="no size")
        return size

    def remove(self, caller: Principal, path: str) -> None:
        with self._as(caller) as bucket:
            bucket.remove([path])

    def download(self, caller: Principal, path: str, max_bytes: int | None = None) -> bytes:
        """At most `max_bytes`, and never more than MAX_BYTES. Raises UnreadableDocument for more, and
        NotFound. storage3 would read an object of any size."""
        limit = min(MAX_BYTES, max_bytes or MAX_BYTES)
        url = f"{self._address}/object/authenticated/{self._bucket}/{path}"
        headers = {**self._headers(caller), "Accept-Encoding": "identity"}
        with (
            _translated_errors(),
            deadline(DOWNLOAD_SECONDS),
            self._client.stream("GET", url, headers=headers) as response,
        ):
            data = read_at_most(limit, response.iter_raw())
        if data is None:
            message = f"The uploaded file is larger than {limit:,} bytes. Divide it, and upload the parts."
            raise UnreadableDocument(message, code="file_too_large")
        return data

    def close(self) -> None:
        self._client.close()

    def _headers(self, caller: Principal) -> dict[str, str]:
        return {"apikey": self._anon_key, "Authorization": f"Bearer {caller.token}"}

    @contextmanager
    def _as(self, caller: Principal) -> Iterator[Any]:
        """The bucket as the caller sees it, for one call."""
        # Imported here: the import takes 40 ms, and most processes do not need it.
        from storage3 import SyncStorageClient
        from storage3.utils import StorageException

        with _translated_errors(), deadline(SECONDS):
            client = SyncStorageClient(f"{self._address}/", self._headers(caller), http_client=self._client)
            try:
                yield client.from_(self._bucket)
            except (StorageException, ValueError, TypeError, KeyError, AttributeError):
                # storage3 expects JSON of a certain form in each response.
                raise StorageFailed(log_reason="malformed response") from None

    def _checked(self, link: str | None) -> str:
        """The link, which must be below Storage's own URL and carry a token."""
        if not link or not link.startswith(f"{self._address}/object/") or "?token=" not in link:
            raise StorageFailed(log_reason="no address")
        return link


@contextmanager
def _translated_errors() -> Iterator[None]:
    try:
        yield
    except httpx.RequestError as error:
        raise StorageFailed(log_reason=type(error).__name__) from None


def _require_success(response: httpx.Response) -> None:
    """Raises the error of a response.

    Storage mostly answers errors with 400 and the status in the body, which storage3 reads only beside a
    message. Refused tokens, a missing bucket and missing policies are faults of the deployment."""
    if response.is_success:
        return
    response.read()
    try:
        body = response.json()
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise StorageFailed(log_reason=f"storage {response.status_code}")
    status = str(body.get("statusCode") or response.status_code)
    names = [body.get("error"), body.get("code")]
    if status == "404" and ("not_found" in names or "NoSuchKey" in names):
        raise NotFound("There is no such file.", code="object_not_found")
    raise StorageFailed(log_reason=f"storage {status[:3]}")
