"""Connections of httpx transports by another network backend."""

from typing import Any

import httpx
import httpx2
import pytest

from shared.library_patches.httpx import set_network_backend

URL = "127.0.0.1:1"


class Refusal(Exception):
    pass


class RefusingBackend:
    def connect_tcp(self, *_: Any, **__: Any) -> None:
        raise Refusal


def test_the_backend_opens_all_connections_of_both_generations():
    for http in (httpx, httpx2):
        for scheme in ("http", "https"):
            for proxy in (None, f"http://{URL}"):
                transport = http.HTTPTransport(proxy=proxy)
                set_network_backend(transport, RefusingBackend())
                with http.Client(transport=transport) as client, pytest.raises(Refusal):
                    client.get(f"{scheme}://{URL}/")


def test_a_transport_without_a_known_pool_is_an_error():
    with pytest.raises(AttributeError):
        set_network_backend(httpx.BaseTransport(), RefusingBackend())
