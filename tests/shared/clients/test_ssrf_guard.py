"""Every way to write an address that leads inside, and a few that do not."""

import pytest

from shared.clients.ssrf_guard import AddressPolicy
from shared.errors import AddressRefused

PUBLIC = AddressPolicy()

INSIDE = """
127.0.0.1 127.8.9.10 0.0.0.0 10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 169.254.169.254 169.254.170.2
100.64.0.1 100.100.100.200 192.0.0.192 198.18.0.1 224.0.0.1 240.0.0.1 255.255.255.255 168.63.129.16
:: ::1 ::7f00:1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:a9fe:a9fe fe80::1 fe80::1%eth0 fc00::1 fd00:ec2::254
ff02::1 fec0::1 3fff::1 5f00::1 2002:7f00:1:: 2001:0:7f00:1::1 64:ff9b::7f00:1 64:ff9b::169.254.169.254
64:ff9b:1::a00:1 2001:db8::1
"""
NOTATIONS = """
127.0.0.1 127.1 127.0.1 2130706433 0x7f000001 0x7f.0.0.1 0177.0.0.1 017700000001 0x7f.1 127.0.0.1.
[::1] [0:0:0:0:0:0:0:1] [::ffff:7f00:1] [::127.0.0.1] [fe80::1%25eth0]
169.254.169.254 0xa9fea9fe 2852039166 0251.0376.0251.0376 10.1 0
１２７.0.0.1 127。0。0。1 ①②⑦.0.0.1 ⓛocalhost
localhost LOCALHOST localhost. a.localhost metadata.google.internal printer.local router.home.arpa
"""
OUTSIDE = ["93.184.215.14", "1.1.1.1", "2606:4700:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"]


def test_an_internal_address_is_refused(subtests: pytest.Subtests):
    for address in INSIDE.split():
        with subtests.test(address=address), pytest.raises(AddressRefused):
            PUBLIC.require(address)


def test_a_public_address_is_accepted(subtests: pytest.Subtests):
    for address in OUTSIDE:
        with subtests.test(address=address):
            PUBLIC.require(address)


def test_no_notation_bypasses_the_guard(subtests: pytest.Subtests):
    for host in NOTATIONS.split():
        with subtests.test(host=host):
            for url in (f"http://{host}/", f"https://{host}:8443/latest/meta-data"):
                with pytest.raises(AddressRefused):
                    PUBLIC.require_url(url)


def test_a_url_that_is_not_a_web_page_is_refused(subtests: pytest.Subtests):
    cases: list[str] = [
        "", "example.com", "//example.com", "/etc/passwd", "file:///etc/passwd", "ftp://example.com", "gopher://x",
        "javascript:alert(1)", "data:text/html,x", "http://", "http:///x", "http://user:pass@example.com/",
        "http://user@example.com/", "http://example.com:99999/", "http://exa mple.com/", "http://[::1", "http://\x00",
        "http://example.com/" + "a" * 2000,
    ]  # fmt: skip
    for url in cases:
        with subtests.test(url=url), pytest.raises(AddressRefused):
            PUBLIC.require_url(url)


def test_an_accepted_url_is_unchanged():
    cases: list[tuple[str, str]] = [
        ("https://example.com/a?b=c#d", "https://example.com/a?b=c"),
        (" http://EXAMPLE.com ", "http://example.com"),
        ("https://bücher.example/ä", "https://xn--bcher-kva.example/%C3%A4"),
        ("http://93.184.215.14:8080/", "http://93.184.215.14:8080/"),
        ("http://notlocalhost/", "http://notlocalhost/"),
    ]
    assert [(url, PUBLIC.require_url(url)) for url, _ in cases] == cases


def test_only_configured_internal_networks_are_allowed():
    own = AddressPolicy(["10.1.0.0/16", "fd12::/16", "127.0.0.1/32"])
    for address in ("10.1.2.3", "fd12::7", "::ffff:10.1.2.3", "127.0.0.1"):
        own.require(address)
    assert own.require_url("http://localhost:8000/x") == "http://localhost:8000/x"
    for address in ("10.2.0.1", "fd13::7", "127.0.0.2", "169.254.169.254"):
        with pytest.raises(AddressRefused):
            own.require(address)
    with pytest.raises(ValueError, match="10"):
        AddressPolicy(["10.0.0.1/8"])


def test_names_of_a_local_network_need_an_allowed_network():
    """The look-up before the connection shows where they lead (test_download.py)."""
    own = AddressPolicy(["10.1.0.0/16"])
    for url in ("https://wiki.corp.internal/x", "http://wiki.local/", "http://n8n.home.arpa:5678/hook"):
        assert own.require_url(url) == url
        with pytest.raises(AddressRefused):
            PUBLIC.require_url(url)
    for host in ("localhost", "a.localhost", "app.localdomain"):
        with pytest.raises(AddressRefused):
            own.require_url(f"http://{host}/")
