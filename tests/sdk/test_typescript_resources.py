"""What the TypeScript SDK's resources promise beyond a call: pages, kinds of files, deletions that say what
is so. The caller is any key."""

import re
import socket

from tests.sdk.test_typescript_calls import DELETE, refusal
from tests.sdk.typescript_package import HOME, Package, Row
from tests.stand_in_server import Reply, StandIn


def test_sessions_and_messages_are_paged(typescript: Package, gateway: StandIn):
    rows = [{"id": f"s{number}"} for number in range(5)]
    gateway.replies(
        Reply(json=rows[:2]), Reply(json=rows[2:4]), Reply(json=rows[4:]),
        Reply(json=rows[:2]), Reply(json=[]), Reply(json=rows),
    )  # fmt: skip
    listing: Row = {"call": "chat.sessions.list", "args": [{"limit": 2}], "all": -1}
    messages: Row = {"call": "chat.sessions.messages", "args": ["s", {"limit": 2, "offset": 4}], "all": -1}
    steps = listing, messages, {"call": "chat.sessions.list"}
    every, lines, page = typescript.results({"baseUrl": gateway.url}, *steps)
    assert every["value"] == {"items": [row["id"] for row in rows], "plain": True}
    assert lines["value"]["items"] == ["s0", "s1"]
    assert (page["value"]["items"], page["value"]["pagination"]) == (rows, None)
    assert [request.path for request in gateway.requests] == [
        *(f"/chat/sessions?limit=2&offset={offset}" for offset in (0, 2, 4)),
        *(f"/chat/sessions/s/messages?limit=2&offset={offset}" for offset in (4, 6)),
        "/chat/sessions?limit=20&offset=0",
    ]


def test_a_file_is_sent_with_its_metadata(typescript: Package, gateway: StandIn):
    """By the given type, else by the file's, else by its name."""
    gateway.replies(Reply(json={"id": "d"}))
    table: list[tuple[Row, Row, str]] = [
        ({"kind": "file", "name": "kiln.md"}, {}, "text/markdown"),
        ({"kind": "named", "name": "kiln.PDF"}, {}, "application/pdf"),
        ({"kind": "bytes"}, {"filename": "a.docx"}, "application/vnd.openxmlformats-officedocument."),
        ({"kind": "blob"}, {"filename": "a.md"}, "text/plain"),
        ({"kind": "blob"}, {"filename": "a.md", "contentType": "text/x-a"}, "text/x-a"),
        ({"kind": "bytes"}, {"filename": "a.constructor"}, "application/octet-stream"),
    ]
    steps: list[Row] = [{"args": [{"collectionId": HOME, **text}], "file": file} for file, text, _ in table]
    for step in steps:
        step |= {"call": "documents.create", "file": {**step["file"], "text": "hot"}}
    typescript.results({"baseUrl": gateway.url}, *steps)
    for request, (_, _, kind) in zip(gateway.requests, table, strict=True):
        results = re.search(rb'filename="[^\r]*\r\nContent-Type: ([^\r]*)', request.body)
        assert results
        assert results[1].decode().startswith(kind)


def test_a_deletion_of_a_missing_document_is_an_error(typescript: Package, gateway: StandIn):
    """After an attempt that reached no server, and after 408; not after one that may have been done."""
    missing = refusal(404, "collection_not_found")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nowhere = f"http://127.0.0.1:{closed.getsockname()[1]}"
        gateway.replies(missing)
        client = {"apiKey": "k", "baseUrl": gateway.url}
        request = {"client": client, "steps": [DELETE], "hurried": True, "refused": nowhere}
        output = typescript.run("driver.mjs", request)
    (refused,) = output["results"]
    assert (refused["asked"], refused["error"]["name"]) == (2, "NotFoundError")
    with StandIn() as other:
        other.replies(Reply(status=408, json={}), missing, Reply(status=502, json={}), missing)
        late, perhaps = typescript.results({"baseUrl": other.url}, DELETE, DELETE, hurried=True)
    assert late["error"]["name"] == "NotFoundError"
    assert "error" not in perhaps
