"""Bucket of an S3-compatible service as a source, by fsspec's s3fs.

The service is AWS, or one of the operator's settings. Each connection leads to an address that the SSRF guard
admits. Without credentials the bucket must be public: those of this process are never used. Errors of the
service may quote credentials, so that their texts are not repeated.
"""

import asyncio
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from shared.clients.ssrf_guard import AddressPolicy
from shared.errors import AddressRefused, FetchFailed, UnreadableDocument
from shared.ingestion.sources.source import (
    MAX_BYTES,
    Content,
    CredentialsRefused,
    Item,
    ItemGone,
    ListingRefused,
)

LISTED_AT_ONCE = 1000
CONNECT_SECONDS, READ_SECONDS, ATTEMPTS = 10, 30, 2
# Of a page of the listing, or of an object, however slowly it arrives: below the lease of a source.
CALL_SECONDS = 120.0
DEFAULT_REGION = "us-east-1"
# Lambda's zip has the libraries in it.
LIBRARIES = str(Path(__file__).parents[3] / "sources")


class Bucket:
    lists_all = True

    def __init__(
        self,
        address: str,
        endpoint: str | None,
        region: str | None,
        credentials: dict[str, Any] | None,
        networks: AddressPolicy,
    ) -> None:
        """`credentials`: access_key_id, secret_access_key and optionally session_token. Raises AddressRefused
        for an endpoint in a private network, and CredentialsRefused."""
        if endpoint:
            networks.require_url(endpoint)
        self._bucket, _, self._prefix = address.removeprefix("s3://").partition("/")
        self._sizes: dict[str, int] = {}
        self._files = _file_system(endpoint, region, credentials, networks)

    def items(self, after: str) -> Iterator[Sequence[Item]]:
        start, is_truncated = after.removeprefix(self._address_of("")), True
        while is_truncated:
            page = self._list(start)
            objects = page.get("Contents", [])
            is_truncated = page.get("IsTruncated", False)
            if is_truncated and not objects:
                raise FetchFailed("The bucket returns a page without objects. Please try again later.")
            # Names that end with a slash are folders, as consoles create them.
            files = [entry for entry in objects if entry["Size"] and not entry["Key"].endswith("/")]
            self._sizes = {self._address_of(entry["Key"]): entry["Size"] for entry in files}
            yield [Item(self._address_of(entry["Key"]), entry["ETag"].strip('"')) for entry in files]
            start = objects[-1]["Key"] if objects else ""

    def fetch(self, item: Item, known_version: str | None) -> Content | None:
        if self._sizes[item.id] > MAX_BYTES:
            raise _too_large()
        key = item.id.removeprefix(self._address_of(""))
        try:
            # An object that has become larger is not read as a whole.
            data: bytes = self._in_time(
                self._files._cat_file, f"{self._bucket}/{key}", start=0, end=MAX_BYTES + 1
            )
        except FileNotFoundError:
            raise ItemGone from None
        except Exception as error:
            raise _translated(error) from None
        if len(data) > MAX_BYTES:
            raise _too_large()
        return Content(
            data, None, key.rpartition("/")[2], None, {"path": key, "source": f"s3://{self._bucket}"}
        )

    def _list(self, start: str) -> dict[str, Any]:
        try:
            page: dict[str, Any] = self._in_time(
                self._files._call_s3,
                "list_objects_v2",
                Bucket=self._bucket,
                Prefix=self._prefix,
                StartAfter=start,
                MaxKeys=LISTED_AT_ONCE,
            )
        except FileNotFoundError:
            raise ListingRefused("There is no such bucket. Check its name, region and endpoint.") from None
        except Exception as error:
            raise _translated(error) from None
        return page

    def _in_time(self, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """The result of a coroutine function of the library. Raises FSTimeoutError."""
        from fsspec.asyn import sync

        async def bounded() -> Any:
            return await asyncio.wait_for(call(*arguments, **options), CALL_SECONDS)

        return sync(self._files.loop, bounded)

    def _address_of(self, key: str) -> str:
        return f"s3://{self._bucket}/{key}"


def _too_large() -> UnreadableDocument:
    return UnreadableDocument(
        f"The object is larger than {MAX_BYTES:,} bytes. Divide it.", code="file_too_large"
    )


def _file_system(
    endpoint: str | None, region: str | None, credentials: dict[str, Any] | None, networks: AddressPolicy
) -> Any:
    if LIBRARIES not in sys.path:
        sys.path.append(LIBRARIES)
    from aiohttp.resolver import ThreadedResolver
    from fsspec.asyn import get_loop
    from s3fs import S3FileSystem

    class GuardedResolver(ThreadedResolver):
        """The look-up between which and the connection no other look-up happens."""

        async def resolve(
            self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
        ) -> list[Any]:
            results = await super().resolve(host, port, family)
            for result in results:
                networks.require(result["host"])
            return results

    key, secret, token = _checked(credentials) if credentials is not None else (None, None, None)
    return S3FileSystem(
        anon=credentials is None,
        key=key,
        secret=secret,
        token=token,
        endpoint_url=endpoint,
        client_kwargs={"region_name": region or DEFAULT_REGION},
        config_kwargs={
            "connect_timeout": CONNECT_SECONDS,
            "read_timeout": READ_SECONDS,
            "retries": {"max_attempts": ATTEMPTS},
            "s3": {"addressing_style": "path"} if endpoint else {},
            # Endpoints in the environment and in AWS's configuration files have not passed the guard.
            "ignore_configured_endpoint_urls": True,
            # A proxy would connect to addresses that the resolver has not seen.
            "proxies": {},
            "connector_args": {"resolver": GuardedResolver(get_loop())},
        },
        use_listings_cache=False,
        skip_instance_cache=True,
    )


def _checked(credentials: dict[str, Any]) -> tuple[str, str, str | None]:
    """Key, secret and token. With an incomplete set the library would use the credentials of this process."""
    key, secret = credentials.get("access_key_id"), credentials.get("secret_access_key")
    token = credentials.get("session_token")
    for value in (key, secret, *([] if token is None else [token])):
        if not isinstance(value, str) or not value:
            raise CredentialsRefused
    return str(key), str(secret), token


def _translated(error: BaseException) -> Exception:
    """The error without the service's text."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, AddressRefused):
            return AddressRefused("The endpoint of the bucket is in a private network. Ask the operator.")
        cause = cause.__cause__ or cause.__context__ or getattr(cause, "kwargs", {}).get("error")
    if isinstance(error, PermissionError):
        return ListingRefused(
            "The bucket refuses the credentials, or is not public. Check the credentials, and that they "
            "permit to list the bucket and to read its objects.",
            code="access_denied",
        )
    return FetchFailed(
        "The bucket could not be reached. Check its region and endpoint, or try again later.",
        log_reason=type(error).__name__,
    )
