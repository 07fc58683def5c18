"""Addresses that are fetched, from a real server on this machine, and those that mean harm."""

import gzip
import socket
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

import shared.clients.download
from shared.clients import http_client
from shared.clients.download import MAX_BYTES, Download, fetch
from shared.clients.ssrf_guard import AddressPolicy
from shared.errors import AddressRefused, FetchFailed, UnreadableDocument
from tests import key_pairs
from tests.stand_in_server import Reply, StandIn

# The stand-in's alone.
OWN = AddressPolicy(["127.0.0.1/32"])


def page(body: bytes = b"<p>Kilns</p>", **headers: str) -> Reply:
    return Reply(body=body, headers={"Content-Type": "text/html", **headers})


def leads_to(url: str, status: int = 302) -> Reply:
    return Reply(status=status, body=b"", headers={"Location": url})


def refusal(url: str, kind: type[Exception], networks: AddressPolicy = OWN) -> Any:
    with pytest.raises(kind) as results:
        fetch(url, networks)
    return results.value


def test_a_page_is_fetched_with_its_content_type(service: StandIn):
    service.replies(page())
    url = f"{service.url}/a%20b.md?x=1"
    assert fetch(url, OWN) == Download(b"<p>Kilns</p>", "text/html", None, url, None)
    (request,) = service.requests
    assert request.path == "/a%20b.md?x=1"
    assert "authorization" not in request.headers
    assert "cookie" not in request.headers


def test_without_a_content_type_the_name_decides(subtests: pytest.Subtests):
    for text in ("text/plain; charset=utf-8", "application/octet-stream", ""):
        with subtests.test(text=text), StandIn() as service:
            service.replies(page(b"# Kilns", **{"Content-Type": text}))
            assert fetch(f"{service.url}/docs/a%20guide.md?x=1", OWN).filename == "a guide.md"


def test_redirects_are_followed(service: StandIn):
    service.replies(leads_to("/b"), leads_to(f"{service.url}/c", 308), page())
    assert fetch(f"{service.url}/a", OWN).data == b"<p>Kilns</p>"
    assert [request.path for request in service.requests] == ["/a", "/b", "/c"]


def test_a_redirect_from_https_to_http_is_refused_on_one_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Pages of a source: who reads the traffic must not see them, or change them."""
    tls, client = key_pairs.tls_contexts(tmp_path)
    monkeypatch.setattr(http_client, "_trusted_authorities", lambda: client)
    with StandIn(tls=tls) as service:
        service.replies(leads_to("/b"), page(), leads_to(service.url.replace("https:", "http:")))
        assert fetch(service.url, OWN, same_host=True).url == f"{service.url}/b"
        with pytest.raises(AddressRefused, match="from https to http"):
            fetch(service.url, OWN, same_host=True)
        assert len(service.requests) == 3


def test_endless_redirects_end(service: StandIn):
    service.replies(leads_to("/again"))
    assert refusal(service.url, UnreadableDocument).code == "url_refused"
    assert len(service.requests) == 6


def test_a_redirect_to_an_internal_address_is_refused(subtests: pytest.Subtests):
    cases = (
        "http://127.0.0.2/", "http://169.254.169.254/latest/meta-data", "http://[::1]/",
        "file:///etc/passwd", "http://2130706434/", "//10.0.0.1/x", "http://user@127.0.0.1/",
    )  # fmt: skip
    for target in cases:
        with subtests.test(target=target), StandIn() as service:
            service.replies(leads_to(target))
            refusal(service.url, AddressRefused)
            assert len(service.requests) == 1


def names(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """A name server of our own: what it says of kiln.example, one answer after the other; who was asked."""
    requests: list[str] = []
    replies = iter(answers)

    real = socket.getaddrinfo

    def getaddrinfo(host: str, port: int, *more: Any, **named: Any) -> Any:
        if not host.endswith((".example", ".internal")):
            # An address, of which no name server is asked.
            return real(host, port, *more, **named)
        requests.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in next(replies)]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return requests


def test_a_name_of_an_internal_address_is_refused(subtests: pytest.Subtests):
    cases: list[list[str]] = [["127.0.0.1"], ["169.254.169.254"], ["93.184.215.14", "10.0.0.1"], ["::1"]]
    for answer in cases:
        with subtests.test(answer=answer), pytest.MonkeyPatch.context() as monkeypatch:
            names(monkeypatch, answer)
            refusal("http://kiln.example/", AddressRefused, AddressPolicy())


def test_a_name_is_resolved_once_and_that_address_is_used(monkeypatch: pytest.MonkeyPatch, service: StandIn):
    """A name server that gives a good address first and another afterwards is never asked again."""
    # A proxy would resolve the name again: addresses of users are fetched without one.
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    service.replies(page())
    request = names(monkeypatch, ["127.0.0.1"], ["127.0.0.2"])
    url = service.url.replace("127.0.0.1", "kiln.example")
    assert fetch(url, OWN).data == b"<p>Kilns</p>"
    assert request == ["kiln.example"]
    assert service.requests[0].headers["host"].startswith("kiln.example:")


def test_a_local_name_leads_to_allowed_networks_alone(monkeypatch: pytest.MonkeyPatch, service: StandIn):
    queries = names(monkeypatch, ["127.0.0.1"], ["10.0.0.1"], ["169.254.169.254"])
    port = service.url.rpartition(":")[2]
    service.replies(page())
    url = f"http://wiki.corp.internal:{port}/"
    assert fetch(url, OWN).data == b"<p>Kilns</p>"
    refusal(url, AddressRefused)
    refusal(f"http://metadata.google.internal:{port}/", AddressRefused)
    # Without allowed networks no name server is asked.
    refusal(url, AddressRefused, AddressPolicy())
    assert len(queries) == 3
    assert len(service.requests) == 1


def test_the_next_redirect_is_resolved_again(monkeypatch: pytest.MonkeyPatch, service: StandIn):
    service.replies(leads_to("http://other.example/"))
    names(monkeypatch, ["127.0.0.1"], ["10.0.0.1"])
    refusal(service.url.replace("127.0.0.1", "kiln.example"), AddressRefused)


def test_a_temporarily_missing_page_alone_is_retried(subtests: pytest.Subtests):
    for status in (401, 404, 451, 204, 206, 408, 429, 500, 503):
        is_retried = status in (408, 429, 500, 503)
        with subtests.test(status=status), StandIn() as service:
            service.replies(Reply(status=status, body=b""))
            error = refusal(service.url, FetchFailed if is_retried else UnreadableDocument)
            assert is_retried or (error.code, str(status) in str(error)) == ("url_refused", True)


def test_a_broken_connection_and_an_unreachable_host_are_retried_later(service: StandIn):
    service.replies(Reply(drop=True))
    refusal(service.url, FetchFailed)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        refusal(f"http://127.0.0.1:{free.getsockname()[1]}/", FetchFailed)


def test_an_unknown_host_is_not_retried(monkeypatch: pytest.MonkeyPatch):
    """Whether a name server is there to ask depends on the machine."""
    for reason, kind in (
        (socket.EAI_NONAME, UnreadableDocument),
        (socket.EAI_NODATA, UnreadableDocument),
        (socket.EAI_AGAIN, FetchFailed),
    ):

        def resolve(*_: object, reason: int = reason, **__: object) -> None:
            raise socket.gaierror(reason, "no")

        monkeypatch.setattr(socket, "getaddrinfo", resolve)
        refusal("http://nowhere.invalid/", kind)


def test_a_slow_body_and_slow_headers_are_aborted(monkeypatch: pytest.MonkeyPatch, service: StandIn):
    monkeypatch.setattr(shared.clients.download, "SECONDS", 0.5)
    service.replies(
        Reply(body=b"x" * 1000, drip=0.05, headers={"Content-Type": "text/plain"}),
        Reply(body=b"x", drip=0.05, drip_head=True),
    )
    for _ in range(2):
        assert refusal(service.url, UnreadableDocument).code == "url_too_slow"


def test_an_endless_body_is_aborted(monkeypatch: pytest.MonkeyPatch, service: StandIn):
    """It has no length."""
    monkeypatch.setattr(shared.clients.download, "MAX_BYTES", 10)
    service.replies(Reply(chunks=[b"a" * 11, 600.0]))
    assert refusal(service.url, UnreadableDocument).code == "file_too_large"


@pytest.mark.parametrize("encoding", ["gzip", "gzip, gzip", "br", "deflate"])
def test_an_endless_compressed_body_is_aborted(
    monkeypatch: pytest.MonkeyPatch, service: StandIn, encoding: str
):
    """And takes no more memory on its way than it may be large."""
    largest = MAX_BYTES // 10
    monkeypatch.setattr(shared.clients.download, "MAX_BYTES", largest)
    packed = gzip.compress(gzip.compress(bytes(20 * largest)) if "," in encoding else bytes(4 * largest))
    service.replies(page(packed, **{"Content-Encoding": encoding}))
    tracemalloc.start()
    try:
        code = refusal(service.url, UnreadableDocument).code
        assert tracemalloc.get_traced_memory()[1] < 3 * largest
    finally:
        tracemalloc.stop()
    assert code == ("file_too_large" if encoding == "gzip" else "processing_failed")


def test_an_unrequested_compression_is_decoded(service: StandIn):
    service.replies(page(gzip.compress(b"<p>Kilns</p>"), **{"Content-Encoding": "gzip"}))
    assert fetch(service.url, OWN).data == b"<p>Kilns</p>"


def test_a_wrongly_declared_compression_is_an_error(subtests: pytest.Subtests):
    cases: dict[str, bytes] = {"not": b"no gzip", "half": gzip.compress(b"<p>Kilns</p>")[:-4], "nothing": b""}
    for case, body in cases.items():
        with subtests.test(case), StandIn() as service:
            service.replies(page(body, **{"Content-Encoding": "gzip"}))
            assert refusal(service.url, UnreadableDocument).code == "processing_failed"


def test_a_file_name_can_be_stored(subtests: pytest.Subtests):
    long = f"{'x' * 600}.md"
    cases = {"/a%0Ab.md": "a b.md", "/a%E2%80%8Bb.md": "ab.md", "/": None, f"/{long}": long[-512:]}
    for path, name in cases.items():
        with subtests.test(name=name), StandIn() as service:
            service.replies(page(b"# Kilns", **{"Content-Type": ""}))
            results = fetch(f"{service.url}{path}", OWN)
            assert (results.content_type, results.filename) == (None, name)
