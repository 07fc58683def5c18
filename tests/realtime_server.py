"""A WebSocket server that stands in for Supabase Realtime: private channels and their messages in both of its
serializations, and the ways in which it fails. It notes what its protocol does not allow."""

import json
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs, urlsplit

from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.sync.server import ServerConnection, serve

# After a channel was joined its token expires, it crashes, or the connection drops.
FAILURES = ("expires", "crashes", "drops")


class RealtimeServer:
    """Use as a context manager. `ways` of the connections, the last one for all further ones: "works",
    "is-deaf" (sends no changes), "refuses" joins, "is-silent" (answers no join), "rejects" connections, or
    one of FAILURES. `may_join` gets a token and a topic, `after_join` a topic."""

    def __init__(
        self,
        *ways: str,
        may_join: Callable[[str, str], bool],
        after_join: Callable[[str], None] | None = None,
    ) -> None:
        self.way, self._ways = ways[0], iter(ways)
        self.may_join, self.after_join = may_join, after_join
        self.joins: list[str] = []
        self.faults: list[str] = []
        # The topics of each open connection, with the references of their joins.
        self.open: dict[ServerConnection, dict[str, str]] = {}
        self._lock = threading.RLock()
        self._server = serve(self._connection, "127.0.0.1", 0, process_request=self._admit)
        self.url = f"http://127.0.0.1:{self._server.socket.getsockname()[1]}"

    def __enter__(self) -> "RealtimeServer":
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for connection in list(self.open):
            connection.close()
        self._server.shutdown()

    def broadcast(self, topic: str, event: str, payload: dict[str, Any]) -> None:
        """Send a message of the database to the receivers of that topic."""
        with self._lock:
            for connection in [each for each, topics in self.open.items() if f"realtime:{topic}" in topics]:
                with suppress(ConnectionClosed):
                    self._send_broadcast(connection, f"realtime:{topic}", event, payload)

    def _admit(self, connection: ServerConnection, request: Request) -> Response | None:
        address = urlsplit(request.path)
        query = parse_qs(address.query)
        if not address.path.endswith("/realtime/v1/websocket") or "apikey" not in query:
            self.faults.append(f"connection to {request.path}")
        self.way = next(self._ways, self.way)
        return connection.respond(401, '{"error": "Token has expired"}') if self.way == "rejects" else None

    def _connection(self, connection: ServerConnection) -> None:
        self.open[connection] = {}
        with suppress(ConnectionClosed):
            for frame in connection:
                with self._lock:
                    self._message(connection, json.loads(frame))
        with self._lock:
            del self.open[connection]

    def _message(self, connection: ServerConnection, message: Any) -> None:
        if isinstance(message, dict):
            message = [message.get(name) for name in ("join_ref", "ref", "topic", "event", "payload")]
        join_ref, _, topic, event, payload = message
        topics = self.open[connection]
        if (topic, event) == ("phoenix", "heartbeat"):
            self._reply(connection, message)
        elif event == "phx_join":
            if topic in topics:
                self.faults.append(f"{topic} was joined twice")
            self._join(connection, message)
        elif event == "phx_leave":
            self._reply(connection, message)
            if topics.pop(topic, None):
                self._send(connection, [join_ref, join_ref, topic, "phx_close", {}])
        elif event != "access_token" or topic not in topics or not payload["access_token"]:
            self.faults.append(f"{event} on {topic}")

    def _join(self, connection: ServerConnection, message: Any) -> None:
        _, ref, topic, _, payload = message
        self.joins.append(topic.removeprefix("realtime:"))
        if not payload["config"]["private"] or not ref:
            self.faults.append(f"{topic} was joined with {payload}")
        if self.way == "is-silent":
            return
        token = payload.get("access_token") or ""
        if self.way == "refuses" or not self.may_join(token, topic.removeprefix("realtime:")):
            reason = f"Unauthorized: You do not have permissions to read from this Channel topic: {topic}"
            self._reply(connection, message, "error", {"reason": reason})
            return
        self.open[connection][topic] = ref
        # A receiver is registered before its join is answered.
        self._send_broadcast(connection, topic, "document", {"id": "another", "status": "completed"})
        self._reply(connection, message, response={"postgres_changes": []})
        self._send(connection, [None, None, topic, "presence_state", {}])
        self._send(connection, [None, None, topic, "presence_diff", {"joins": {}, "leaves": {}}])
        if self.way in FAILURES:
            threading.Timer(0.1, self._fail, (connection, topic, ref)).start()
        elif self.way == "works" and self.after_join:
            threading.Timer(0, self.after_join, (topic.removeprefix("realtime:"),)).start()

    def _fail(self, connection: ServerConnection, topic: str, ref: str) -> None:
        with self._lock, suppress(ConnectionClosed, OSError):
            if self.way == "drops":
                connection.socket.shutdown(2)
                return
            if self.way == "expires":
                error = {"extension": "system", "status": "error", "channel": topic.removeprefix("realtime:")}
                self._send(
                    connection, [ref, None, topic, "system", {**error, "message": "Token has expired"}]
                )
            self.open.get(connection, {}).pop(topic, None)
            event = "phx_close" if self.way == "expires" else "phx_error"
            self._send(connection, [ref, ref, topic, event, {}])

    def _reply(
        self, connection: ServerConnection, message: Any, status: str = "ok", response: Any = None
    ) -> None:
        join_ref, ref, topic, _, _ = message
        payload = {"status": status, "response": response or {}}
        self._send(connection, [join_ref, ref, topic, "phx_reply", payload])

    def _send_broadcast(self, connection: ServerConnection, topic: str, event: str, payload: Any) -> None:
        meta = {"id": "11111111-2222-4333-8444-555555555555"}
        if _is_first(connection):
            body = {"event": event, "payload": payload, "type": "broadcast", "meta": meta}
            self._send(connection, [None, None, topic, "broadcast", body])
            return
        # A binary frame: its kind, the lengths of its texts, 1 for a payload in JSON.
        texts = [text.encode() for text in (topic, event, json.dumps(meta))]
        head = bytes([4, *map(len, texts), 1])
        connection.send(head + b"".join(texts) + json.dumps(payload).encode())

    def _send(self, connection: ServerConnection, message: list[Any]) -> None:
        _, ref, topic, event, payload = message
        first = {"topic": topic, "event": event, "payload": payload, "ref": ref}
        connection.send(json.dumps(first if _is_first(connection) else message))


def _is_first(connection: ServerConnection) -> bool:
    """Whether the connection uses version 1.0.0 of the serialization."""
    return connection.request is not None and "vsn=2.0.0" not in connection.request.path
