"""A real HTTP server that stands in for a project with Supabase Storage: the storage server's routes, bodies
and errors here, everything else passed on to the stack's gateway. As the real one does, it keeps objects
apart from their rows, and lets Postgres decide about each, under the caller's role and claims.

After supabase/storage: src/http/routes/object and src/storage/object.ts.
"""

import json
import re
import secrets
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

import httpx
from jose import JWTError, jwt

from local.stack import Stack
from tests.storage_rows import Answer, NoKey, Operation, Rows, StorageError, in_json

BUCKET = "rag-originals"
PREFIX = "/storage/v1"
CORS = {f"Access-Control-Allow-{name}": "*" for name in ("Origin", "Methods", "Headers")}
KEY = re.compile(r"[\w/!.*'() &$@=;:+,?-]+", re.ASCII)
# Columns of storage.objects that are written.
INSERT = (
    "insert into storage.objects (bucket_id, name, owner_id, version, metadata) "
    "values (%s, %s, %s, gen_random_uuid(), %s)"
)


class StorageServer:
    """Use as a context manager. `fault`, if set, is what every route of Storage answers with, and `stuck` an
    object that does not go; `asked` are its requests, each with the claims of the caller's token."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._rows = Rows(stack)
        self.asked = self._rows.asked
        self._secret = secrets.token_hex(32)
        self.objects: dict[str, bytes] = {}
        self.fault: int | None = None
        self.stuck: str | None = None
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1

            def do_GET(self) -> None:
                server._serve(self)

            def do_POST(self) -> None:
                server._serve(self)

            def do_PUT(self) -> None:
                server._serve(self)

            def do_PATCH(self) -> None:
                server._serve(self)

            def do_DELETE(self) -> None:
                server._serve(self)

            def do_OPTIONS(self) -> None:
                """A page of another origin may use every route, as with the real server."""
                self.send_response(204)
                for name, value in CORS.items():
                    self.send_header(name, value)
                self.end_headers()

            def log_message(self, format: str, *arguments: Any) -> None:
                """Silent: the requests are recorded."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> "StorageServer":
        self._client = httpx.Client(base_url=self._stack.url, timeout=30)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        self._client.close()

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        if handler.path.startswith(PREFIX):
            status, content, headers = self._answered(handler, body)
        else:
            passed = {name: value for name, value in handler.headers.items() if name.lower() != "host"}
            answer = self._client.request(handler.command, handler.path, content=body, headers=passed)
            status, content = answer.status_code, answer.content
            headers = {"Content-Type": answer.headers.get("Content-Type", "text/plain")}
        handler.send_response(status)
        for name, value in {**CORS, **headers, "Content-Length": str(len(content))}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(content)

    def _answered(self, handler: BaseHTTPRequestHandler, body: bytes) -> Answer:
        parts = urlsplit(handler.path.removeprefix(PREFIX))
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        if self.fault:
            return in_json(
                {"statusCode": str(self.fault), "error": "Internal", "message": "fault"}, self.fault
            )
        for method, pattern, serve in self._routes():
            pattern_match = re.fullmatch(pattern, parts.path)
            if method == handler.command and pattern_match:
                bucket, name = (unquote(part) for part in (*pattern_match.groups(), "", "")[:2])
                try:
                    return serve(Operation(method, parts.path, bucket, name, query, handler.headers, body))
                except StorageError as error:
                    return error.answer
        return in_json({"statusCode": "404", "error": "Not Found", "message": "Route not found"}, 404)

    def _routes(self) -> list[tuple[str, str, Callable[..., Answer]]]:
        """In the order in which they are tried."""
        return [
            ("POST", "/object/upload/sign/([^/]+)/(.+)", self._sign_upload),
            ("PUT", "/object/upload/sign/([^/]+)/(.+)", self._upload_signed),
            ("POST", "/object/sign/([^/]+)/(.+)", self._sign),
            ("GET", "/object/sign/([^/]+)/(.+)", self._get_signed),
            ("GET", "/object/info/([^/]+)/(.+)", self._info),
            ("GET", "/object/authenticated/([^/]+)/(.+)", self._get),
            ("POST", "/object/list/([^/]+)", self._list),
            ("POST", "/object/move", self._move),
            ("POST", "/object/([^/]+)/(.+)", self._upload),
            ("DELETE", "/object/([^/]+)", self._delete),
        ]

    # -- as the caller ---------------------------------------------------------------------------------

    def _found(self, request: Operation) -> dict[str, Any]:
        _require_key(request.name)
        with self._rows.as_caller(request) as (connection, _):
            if not self._rows.bucket(request.bucket):
                raise StorageError(404, "Bucket not found", "Bucket not found")
            columns = "id::text, name, bucket_id, (metadata ->> 'size')::bigint, metadata ->> 'mimetype'"
            statement = f"select {columns} from storage.objects where bucket_id = %s and name = %s"
            row = connection.execute(statement.encode(), [request.bucket, request.name]).fetchone()
        if row is None:
            raise NoKey
        return dict(zip(("id", "name", "bucket_id", "size", "content_type"), row, strict=True))

    def _sign_upload(self, request: Operation) -> Answer:
        _require_key(request.name)
        with self._rows.as_caller(request) as (connection, claims):
            # Whether the row could be written; it is not.
            connection.execute(INSERT, [request.bucket, request.name, claims.get("sub"), None])
            connection.rollback()
        token = self._token("upload", request.place, 7200, owner=claims.get("sub"))
        return in_json({"url": f"/object/upload/sign/{request.place}?token={token}", "token": token})

    def _upload(self, request: Operation) -> Answer:
        _require_key(request.name)
        second = "on conflict (bucket_id, name) do update set metadata = excluded.metadata"
        statement = INSERT + (f" {second}" if request.headers.get("x-upsert") == "true" else "")
        with self._rows.as_caller(request) as (connection, claims):
            connection.execute(
                statement.encode(), [request.bucket, request.name, claims.get("sub"), _metadata(request)]
            )
        return self._kept(request)

    def _info(self, request: Operation) -> Answer:
        return in_json(self._found(request))

    def _get(self, request: Operation) -> Answer:
        self._found(request)
        return 200, self.objects[request.place], {"Content-Type": "application/octet-stream"}

    def _sign(self, request: Operation) -> Answer:
        self._found(request)
        token = self._token("download", request.place, int(json.loads(request.body)["expiresIn"]))
        return in_json({"signedURL": f"/object/sign/{request.place}?token={token}"})

    def _list(self, request: Operation) -> Answer:
        with self._rows.as_caller(request) as (connection, _):
            statement = "select name from storage.objects where bucket_id = %s order by name"
            rows = connection.execute(statement, [request.bucket]).fetchall()
        return in_json([{"name": name} for (name,) in rows])

    def _move(self, request: Operation) -> Answer:
        fields = json.loads(request.body)
        with self._rows.as_caller(request) as (connection, _):
            statement = "update storage.objects set name = %s where bucket_id = %s and name = %s"
            places = [fields["destinationKey"], fields["bucketId"], fields["sourceKey"]]
            if not connection.execute(statement, places).rowcount:
                raise NoKey
        return in_json({"message": "Successfully moved"})

    def _delete(self, request: Operation) -> Answer:
        expected = json.loads(request.body)["prefixes"]
        if self.stuck in expected:
            raise StorageError(500, "Internal", "stuck")
        with self._rows.as_caller(request) as (connection, _):
            statement = "delete from storage.objects where bucket_id = %s and name = any (%s) returning name"
            rows = connection.execute(statement, [request.bucket, expected]).fetchall()
        for (gone,) in rows:
            self.objects.pop(f"{request.bucket}/{gone}", None)
        return in_json([{"name": gone} for (gone,) in rows])

    # -- by a token of its own -------------------------------------------------------------------------

    def _upload_signed(self, request: Operation) -> Answer:
        claims = self._opened(request.query.get("token", ""), "upload", request.place)
        if len(request.body) > self._rows.bucket(request.bucket)[0]:
            raise StorageError(413, "Payload too large", "The object exceeded the maximum allowed size")
        with self._rows.as_role("service_role", {"role": "service_role"}) as connection:
            connection.execute(INSERT, [request.bucket, request.name, claims["owner"], _metadata(request)])
        return self._kept(request)

    def _get_signed(self, request: Operation) -> Answer:
        self._opened(request.query.get("token", ""), "download", request.place)
        if request.place not in self.objects:
            raise NoKey
        headers = {"Content-Type": "application/octet-stream"}
        if "download" in request.query:
            headers["Content-Disposition"] = (
                f"attachment; filename*=UTF-8''{quote(request.query['download'], safe='')};"
            )
        return 200, self.objects[request.place], headers

    def _token(self, scope: str, url: str, seconds: int, **more: Any) -> str:
        claims = {"url": url, "scope": scope, "exp": int(time.time()) + seconds, **more}
        return str(jwt.encode(claims, self._secret, "HS256"))

    def _opened(self, token: str, scope: str, url: str) -> dict[str, Any]:
        try:
            claims: dict[str, Any] = jwt.decode(token, self._secret, "HS256")
        except JWTError as invalid:
            raise StorageError(400, "InvalidJWT", str(invalid)) from None
        if (claims["scope"], claims["url"]) != (scope, url):
            raise StorageError(400, "InvalidSignature", "Invalid signature")
        return claims

    def _kept(self, request: Operation) -> Answer:
        self.objects[request.place] = request.body
        return in_json({"Key": request.place})


def _require_key(name: str) -> None:
    if not KEY.fullmatch(name):
        raise StorageError(400, "InvalidKey", f"Invalid key: {name}")


def _metadata(request: Operation) -> str:
    return json.dumps({"size": len(request.body), "mimetype": request.headers.get("Content-Type")})
