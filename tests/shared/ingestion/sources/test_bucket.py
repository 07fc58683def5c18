"""Buckets of an S3-compatible server in this process: pages, versions, private addresses, credentials."""

import logging
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import httpx
import pytest
from moto.server import ThreadedMotoServer

from shared.clients.ssrf_guard import AddressPolicy
from shared.errors import AddressRefused, FetchFailed, RagError, UnreadableDocument
from shared.ingestion.sources import bucket as bucket_module
from shared.ingestion.sources.bucket import Bucket
from shared.ingestion.sources.open_source import open_source
from shared.ingestion.sources.source import (
    CredentialsRefused,
    EndpointRefused,
    Item,
    ItemGone,
    ListingRefused,
)
from tests.stand_in_server import Reply, StandIn

OWN = AddressPolicy(["127.0.0.1/32"])
CREDENTIALS = {"access_key_id": "AKIAEXAMPLE", "secret_access_key": "s3cret-value"}


class Server:
    def __init__(self, url: str) -> None:
        self.url = url
        self.client: Any = boto3.client(
            "s3", endpoint_url=url, region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="a"
        )
        self.client.create_bucket(Bucket="docs")

    def put(self, key: str, body: bytes) -> None:
        self.client.put_object(Bucket="docs", Key=key, Body=body)

    def opened(self, address: str = "s3://docs", networks: AddressPolicy = OWN) -> Bucket:
        return Bucket(address, self.url, None, CREDENTIALS, networks)


@pytest.fixture(scope="module")
def started() -> Iterator[str]:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def server(started: str) -> Server:
    httpx.post(f"{started}/moto-api/reset")
    return Server(started)


def listed(bucket: Bucket, after: str = "") -> list[Item]:
    return [item for batch in bucket.items(after) for item in batch]


def test_objects_are_listed_in_pages_and_continued(server: Server, monkeypatch: pytest.MonkeyPatch):
    for key in ("a.txt", "docs/", "docs/b.md", "docs/empty", "docs/ü b?.txt", "z.txt"):
        server.put(key, b"" if key in ("docs/", "docs/empty") else key.encode())
    names = ["s3://docs/a.txt", "s3://docs/docs/b.md", "s3://docs/docs/ü b?.txt", "s3://docs/z.txt"]
    for size in (1, 2, 1000):
        monkeypatch.setattr(bucket_module, "LISTED_AT_ONCE", size)
        items = listed(server.opened())
        assert [item.id for item in items] == names
        assert [item.id for item in listed(server.opened(), names[1])] == names[2:]
    assert [item.id for item in listed(server.opened("s3://docs/docs/"))] == names[1:3]
    before = items[0].version
    server.put("a.txt", b"another text")
    bucket = server.opened()
    items = listed(bucket)
    assert items[0].version not in (None, before)
    content = bucket.fetch(items[0], before)
    assert content is not None
    assert (content.data, content.filename) == (b"another text", "a.txt")
    server.client.delete_object(Bucket="docs", Key="a.txt")
    with pytest.raises(ItemGone):
        bucket.fetch(items[0], None)


def test_an_object_that_is_large_or_grew_since_the_listing_is_not_read(
    server: Server, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(bucket_module, "MAX_BYTES", 10)
    server.put("a.txt", b"x" * 10)
    server.put("b.txt", b"x" * 11)
    bucket = server.opened()
    grows, large = listed(bucket)
    content = bucket.fetch(grows, None)
    assert content is not None
    assert content.data == b"x" * 10
    server.put("a.txt", b"x" * 100)
    for item in (grows, large):
        with pytest.raises(UnreadableDocument) as raised:
            bucket.fetch(item, None)
        assert raised.value.code == "file_too_large"


def test_a_page_that_arrives_slowly_is_given_up(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bucket_module, "CALL_SECONDS", 0.3)
    with StandIn() as slow:
        slow.replies(Reply(body=b"<ListBucketResult>" + b" " * 2_000, drip=0.02))
        with pytest.raises(FetchFailed) as given_up:
            listed(Bucket("s3://docs", slow.url, None, CREDENTIALS, OWN))
    assert given_up.value.log_reason == "FSTimeoutError"


def test_an_object_that_arrives_slowly_is_given_up(server: Server, monkeypatch: pytest.MonkeyPatch):
    server.put("a.txt", b"x" * 2_000)
    bucket = server.opened()
    (item,) = listed(bucket)
    with StandIn() as slow:
        slow.replies(Reply(body=b"x" * 2_000, drip=0.02))
        other = Bucket("s3://docs", slow.url, None, CREDENTIALS, OWN)
        other._sizes = bucket._sizes
        monkeypatch.setattr(bucket_module, "CALL_SECONDS", 0.3)
        with pytest.raises(FetchFailed) as given_up:
            other.fetch(item, None)
    assert given_up.value.log_reason == "FSTimeoutError"


def test_no_connection_leads_to_a_private_network(server: Server, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(AddressRefused):
        server.opened(networks=AddressPolicy())
    # A public name with a private address.
    look_up = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda _, *more, **named: look_up("127.0.0.1", *more, **named))
    address = server.url.replace("127.0.0.1", "storage.example")
    with pytest.raises(AddressRefused):
        listed(Bucket("s3://docs", address, None, CREDENTIALS, AddressPolicy()))
    # The server takes the beginning of its name for a bucket.
    with pytest.raises(ListingRefused):
        listed(Bucket("s3://docs", address, None, CREDENTIALS, OWN))


def test_errors_do_not_repeat_credentials(server: Server):
    with pytest.raises(ListingRefused):
        listed(server.opened("s3://none"))
    # From now on the server checks credentials.
    httpx.post(f"{server.url}/moto-api/reset-auth", content="0")
    try:
        with pytest.raises(ListingRefused) as refused:
            listed(server.opened())
    finally:
        httpx.post(f"{server.url}/moto-api/reset-auth", content="inf")
    assert refused.value.code == "access_denied"
    with pytest.raises(FetchFailed) as unreachable:
        listed(Bucket("s3://docs", "http://127.0.0.1:9", None, CREDENTIALS, OWN))
    for error in (refused.value, unreachable.value):
        assert isinstance(error, RagError)
        for secret in CREDENTIALS.values():
            assert secret not in f"{error} {error.log_reason} {error.__cause__}"


@pytest.mark.parametrize("credentials", [{}, {"x": "y"}, {**CREDENTIALS, "secret_access_key": ""}])
def test_the_credentials_of_the_process_are_never_used(
    server: Server, monkeypatch: pytest.MonkeyPatch, credentials: dict[str, str]
):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAOFTHEWORKER")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a secret of the worker")
    server.put("a.txt", b"a")
    with pytest.raises(CredentialsRefused):
        listed(Bucket("s3://docs", server.url, None, credentials, OWN))


def test_no_endpoint_of_the_environment_or_of_a_configuration_file_is_used(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    server.put("a.txt", b"a")
    endpoint = f"endpoint_url = {server.url}\n"
    configuration = tmp_path / "config"
    configuration.write_text(f"[default]\n{endpoint}services = own\n[services own]\ns3 =\n  {endpoint}")
    # No address of AWS itself is asked, and only once.
    monkeypatch.setattr(socket, "getaddrinfo", look_up_nothing)
    monkeypatch.setattr(bucket_module, "ATTEMPTS", 1)
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "FSSPEC_S3_ENDPOINT_URL"):
        monkeypatch.setenv(name, server.url)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(configuration))
    for credentials in (CREDENTIALS, None):
        with pytest.raises(FetchFailed):
            listed(Bucket("s3://docs", None, None, credentials, AddressPolicy()))


def look_up_nothing(*_: Any, **__: Any) -> list[Any]:
    raise socket.gaierror


def test_only_endpoints_of_the_settings_are_used(server: Server):
    row: Any = {"kind": "bucket", "address": "s3://docs", "region": None}
    row |= {"endpoint": server.url, "credentials": CREDENTIALS}
    server.put("a.txt", b"a")
    assert len(list(open_source(row, OWN, [server.url]).items(""))) == 1
    with pytest.raises(EndpointRefused):
        open_source(row, OWN, ["https://s3.example.com"])
