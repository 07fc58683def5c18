"""Stand-ins for bench/request_path.py and bench/peers.py: an embedding endpoint, and the reverse proxy of a
Supabase project.

Both are asyncio protocols without a framework, so that they take little time: python -m bench.served_project.
BENCH_ORGS are the orgs whose questions the endpoint embeds, by the question's text (question_text). It embeds
new documents by their text too (document_text).
"""

import asyncio
import base64
import json
import os
import re
from collections.abc import Sequence

import uvloop

from bench import synthetic_vectors
from bench.tenant_rows import Org

QUESTIONS = 120
_QUESTION = re.compile(rb"Question (\d+) of org (\d+)")
# New documents that have embeddings.
DOCUMENTS = 1000
_DOCUMENT = re.compile(r"New document (\d+)\.")
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


def question_text(org: Org, question: int, asked: int) -> str:
    """The text of a question. `asked` makes it a new one, which no cache has."""
    return f"Question {question % QUESTIONS} of org {org.number}, asked {asked} times"


def document_text(number: int, text: str) -> str:
    """The text of a new document, with the number of its embedding."""
    return f"New document {number}. {text}"


class _Requests(asyncio.Protocol):
    """Collects whole requests of one connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: asyncio.Transport = transport  # type: ignore[assignment]
        self.received = b""

    def data_received(self, data: bytes) -> None:
        self.received += data
        while (end := self.received.find(b"\r\n\r\n")) >= 0:
            declared = _LENGTH.search(self.received, 0, end)
            size = end + 4 + (int(declared[1]) if declared else 0)
            if len(self.received) < size:
                return
            request, self.received = self.received[:size], self.received[size:]
            self.handle(request)

    def handle(self, request: bytes) -> None:
        raise NotImplementedError


class Embeddings(_Requests):
    """An embeddings endpoint that has embedded everything already, with floats or in base64."""

    responses: dict[tuple[bool, bytes, bytes], bytes]
    documents: list[str]

    @classmethod
    def prepare(cls, orgs: list[Org]) -> None:
        vectors = synthetic_vectors.sample(orgs[0].number, orgs[0].topics, DOCUMENTS, stream=2)
        cls.documents = [base64.b64encode(vector.tobytes()).decode() for vector in vectors.astype("<f4")]
        cls.responses = {}
        for org in orgs:
            for question, vector in enumerate(org.queries(QUESTIONS).astype("<f4")):
                for encoded in (False, True):
                    embedding = base64.b64encode(vector.tobytes()).decode() if encoded else vector.tolist()
                    cls.responses[encoded, b"%d" % question, b"%d" % org.number] = _embeddings([embedding])

    def handle(self, request: bytes) -> None:
        question = _QUESTION.search(request)
        if question is not None:
            self.transport.write(self.responses[b'"base64"' in request, question[1], question[2]])
        elif body := request.partition(b"\r\n\r\n")[2]:
            numbers = [_DOCUMENT.findall(text)[0] for text in json.loads(body)["input"]]
            self.transport.write(_embeddings([self.documents[int(number)] for number in numbers]))
        else:  # a probe
            self.transport.write(_response({}))


class Proxy(_Requests):
    """Forwards /rest/v1 to PostgREST, a connection for each of its own."""

    upstream: asyncio.Transport | None = None

    async def _connect(self) -> None:
        port = int(os.environ["BENCH_POSTGREST_PORT"])
        connection = asyncio.get_running_loop().create_connection(lambda: _Answers(self), "127.0.0.1", port)
        self.upstream, _ = await connection
        self.upstream.write(b"".join(self.waiting))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        # Requests before there is a connection.
        self.waiting: list[bytes] = []
        self.connecting = asyncio.ensure_future(self._connect())

    def handle(self, request: bytes) -> None:
        request = request.replace(b" /rest/v1", b" ", 1)
        if self.upstream is None:
            self.waiting.append(request)
        else:
            self.upstream.write(request)

    def connection_lost(self, error: Exception | None) -> None:
        if self.upstream is not None:
            self.upstream.close()


class _Answers(asyncio.Protocol):
    def __init__(self, client: Proxy) -> None:
        self._client = client

    def data_received(self, data: bytes) -> None:
        self._client.transport.write(data)

    def connection_lost(self, error: Exception | None) -> None:
        self._client.transport.close()


def _embeddings(embeddings: Sequence[str | list[float]]) -> bytes:
    data = [
        {"object": "embedding", "index": index, "embedding": embedding}
        for index, embedding in enumerate(embeddings)
    ]
    usage = {"prompt_tokens": 8, "total_tokens": 8}
    return _response({"object": "list", "data": data, "model": "stand-in", "usage": usage})


def _response(body: object) -> bytes:
    content = json.dumps(body).encode()
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n"
    return head.encode() + content


async def main() -> None:
    Embeddings.prepare([Org(*org) for org in json.loads(os.environ["BENCH_ORGS"])])
    loop = asyncio.get_running_loop()
    await loop.create_server(Proxy, "127.0.0.1", int(os.environ["BENCH_PROXY_PORT"]))
    await loop.create_server(Embeddings, "127.0.0.1", int(os.environ["BENCH_EMBEDDINGS_PORT"]))
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main())
