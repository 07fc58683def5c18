"""Proxies of the environment: which address has which."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from shared.clients import proxies
from shared.clients.proxies import proxy_of_url
from shared.errors import ConfigurationError

PROXY = "http://proxy.example:3128"


@contextmanager
def environment(variables: dict[str, str]) -> Iterator[None]:
    """These variables alone."""
    before = dict(os.environ)
    proxies.proxy_of.cache_clear()
    try:
        os.environ.clear()
        os.environ.update(variables)
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
        proxies.proxy_of.cache_clear()


def test_a_proxy_leads_to_services_and_never_to_this_machine():
    openai = "https://api.openai.com/v1"
    for url, variables, expected in (
        (openai, {"HTTPS_PROXY": PROXY}, PROXY),
        (openai, {"HTTP_PROXY": PROXY}, None),
        (openai, {"ALL_PROXY": PROXY}, PROXY),
        (openai, {"https_proxy": "proxy.example:3128"}, PROXY),
        (openai, {"HTTPS_PROXY": PROXY, "NO_PROXY": "openai.com"}, None),
        (openai, {"HTTPS_PROXY": PROXY, "NO_PROXY": "*"}, None),
        (openai, {"HTTPS_PROXY": PROXY, "NO_PROXY": "localhost, *"}, None),
        ("https://api.corp:8443", {"HTTPS_PROXY": PROXY, "NO_PROXY": "api.corp:8443"}, None),
        ("https://api.corp", {"HTTPS_PROXY": PROXY, "NO_PROXY": "api.corp:8443"}, PROXY),
        ("http://127.0.0.1:54321", {"HTTP_PROXY": PROXY, "ALL_PROXY": "socks://x:1"}, None),
        ("http://127.9.9.9", {"HTTP_PROXY": PROXY}, None),
        ("http://0.0.0.0:11434", {"HTTP_PROXY": PROXY}, None),
        ("http://[::1]:8000", {"HTTP_PROXY": PROXY}, None),
        ("http://localhost:8000", {"HTTP_PROXY": PROXY}, None),
        ("http://kong.localhost", {"HTTP_PROXY": PROXY}, None),
        ("http://10.0.0.7:11434/v1", {"HTTP_PROXY": PROXY}, PROXY),
    ):
        with environment(variables):
            assert proxy_of_url(url) == expected, (url, variables)


def test_an_unusable_proxy_is_named_without_its_url(subtests: pytest.Subtests):
    schemes = "not a URL of a proxy with http://, https:// or socks5://"
    for proxy, message in (
        ("socks://user:secret@proxy.example:1", schemes),
        ("http://user:secret/word@proxy.example:3128", "not a URL of a proxy"),
        ("http://proxy.example:port", "not a URL of a proxy"),
        ("socks5://user:secret@proxy.example:1", "a SOCKS proxy needs the package socksio"),
    ):
        with subtests.test(proxy=proxy), environment({"ALL_PROXY": proxy}):
            with pytest.raises(ConfigurationError) as raised:
                proxy_of_url("https://api.openai.com")
            assert str(raised.value).startswith(f"ALL_PROXY: {message}")
            assert "secret" not in str(raised.value)
