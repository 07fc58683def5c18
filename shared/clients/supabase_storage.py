"""Supabase Storage, always as the caller: its server asks row security on storage.objects for each of these
(sql/32_storage.sql). What it answers carries tokens: neither answers nor addresses get into errors or logs.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote, urlencode

import httpx

from shared.clients.http import deadline, http_client
from shared.config import Settings
from shared.errors import NotFound, RagError, StorageFailed, UnreadableDocument
from shared.types import Principal

SECONDS = 10.0
# For the whole of an object, which is up to this large: what a reader and the worker hold between them.
DOWNLOAD_SECONDS = 45.0
MAX_BYTES = 100 * 1024 * 1024
# How long a link leads to an object.
LINK_SECONDS = 60


class Storage:
    """The objects of one bucket. Safe to use from many threads. All methods raise StorageFailed when Storage
    cannot answer."""

    def __init__(self, supabase_url: str, anon_key: str, bucket: str) -> None:
        self._address = f"{supabase_url}/storage/v1"
        self._anon_key = anon_key
        self._bucket = bucket
        self._client = http_client(SECONDS, httpx.Limits(max_connections=32, max_keepalive_connections=8))

    def upload_link(self, caller: Principal, path: str) -> str:
        """Where whoever has it may PUT the object."""
        answer = self._ask(caller, "POST", f"object/upload/sign/{self._bucket}/{path}", json={})
        return self._absolute(answer, "url")

    def download_link(self, caller: Principal, path: str, filename: str) -> str:
        """Where whoever has it may fetch the object for a minute, as a file of that name. Raises NotFound."""
        body = {"expiresIn": LINK_SECONDS}
        answer = self._ask(caller, "POST", f"object/sign/{self._bucket}/{path}", json=body)
        return f"{self._absolute(answer, 'signedURL')}&{urlencode({'download': filename}, quote_via=quote)}"

    def size_of(self, caller: Principal, path: str) -> int:
        """In bytes. Raises NotFound, also for an object that the caller may not see."""
        said = self._ask(caller, "GET", f"object/info/{self._bucket}/{path}")
        size = said.get("size") if isinstance(said, dict) else None
        if type(size) is not int:
            raise StorageFailed(because="no size")
        return size

    def remove(self, caller: Principal, path: str) -> None:
        """One that is not there is gone already."""
        self._ask(caller, "DELETE", f"object/{self._bucket}", json={"prefixes": [path]})

    def download(self, caller: Principal, path: str, max_bytes: int | None = None) -> bytes:
        """At most so many bytes, and never more than MAX_BYTES. Raises UnreadableDocument for more, and
        NotFound."""
        most = min(MAX_BYTES, max_bytes or MAX_BYTES)
        address = f"{self._address}/object/authenticated/{self._bucket}/{path}"
        headers = {**self._headers(caller), "Accept-Encoding": "identity"}
        data = bytearray()
        with (
            _failing(),
            deadline(DOWNLOAD_SECONDS),
            self._client.stream("GET", address, headers=headers) as answer,
        ):
            if answer.status_code != 200:
                answer.read()
                raise _error_of(answer)
            for part in answer.iter_raw():
                data += part
                if len(data) > most:
                    message = f"What was uploaded is larger than {most:,} bytes."
                    raise UnreadableDocument(message, code="file_too_large")
        return bytes(data)

    def close(self) -> None:
        self._client.close()

    def _headers(self, caller: Principal) -> dict[str, str]:
        return {"apikey": self._anon_key, "Authorization": f"Bearer {caller.token}"}

    def _ask(self, caller: Principal, method: str, path: str, **content: Any) -> Any:
        with _failing(), deadline(SECONDS):
            headers = self._headers(caller)
            answer = self._client.request(method, f"{self._address}/{path}", headers=headers, **content)
        if not answer.is_success:
            raise _error_of(answer)
        try:
            said = answer.json()
        except ValueError:
            said = None
        if not isinstance(said, dict | list):
            raise StorageFailed(because="no JSON")
        return said

    def _absolute(self, answer: Any, name: str) -> str:
        """Storage answers with addresses below its own, which carry a token."""
        url = answer.get(name) if isinstance(answer, dict) else None
        if not isinstance(url, str) or not url.startswith("/object/") or "?token=" not in url:
            raise StorageFailed(because="no address")
        return f"{self._address}{url}"


@contextmanager
def _failing() -> Iterator[None]:
    try:
        yield
    except httpx.RequestError as broken:
        raise StorageFailed(because=type(broken).__name__) from None


def _error_of(answer: httpx.Response) -> RagError:
    """Whatever is wrong, Storage mostly answers with 400: the status is in the body. Refused tokens, a
    missing bucket or missing policies are this deployment's faults, and no object's."""
    try:
        said = answer.json()
    except ValueError:
        said = None
    if not isinstance(said, dict):
        return StorageFailed(because=f"storage {answer.status_code}")
    status = str(said.get("statusCode") or answer.status_code)
    named = [said.get("error"), said.get("code")]
    if status == "404" and ("not_found" in named or "NoSuchKey" in named):
        return NotFound("There is no such file.", code="object_not_found")
    return StorageFailed(because=f"storage {status[:3]}")


def storage_for(settings: Settings) -> Storage | None:
    """The bucket that the settings name; None without one."""
    if settings.rag_storage_bucket is None:
        return None
    key = settings.supabase_anon_key.get_secret_value()
    return Storage(settings.supabase_url, key, settings.rag_storage_bucket)
