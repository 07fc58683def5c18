"""A project with Supabase Storage: the storage server's routes, bodies and errors. As the real one does, it
keeps objects apart from their rows, and lets Postgres decide about each, under the caller's role and claims.

After supabase/storage: src/http/routes/object and src/storage/object.ts.
"""

import json
import re
import secrets
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from jose import JWTError, jwt

from local.stack import Stack
from tests.project_server import Answer, ProjectServer, in_json
from tests.storage_rows import NoKey, Operation, Rows, StorageError

BUCKET = "rag-originals"
PREFIX = "/storage/v1"
KEY = re.compile(r"[\w/!.*'() &$@=;:+,?-]+", re.ASCII)
# Columns of storage.objects that are written.
INSERT = (
    "insert into storage.objects (bucket_id, name, owner_id, version, metadata) "
    "values (%s, %s, %s, gen_random_uuid(), %s)"
)


class StorageServer(ProjectServer):
    """Use as a context manager. `fault`, if set, is what every route of Storage answers with, and `stuck` an
    object that does not go; `asked` are its requests, each with the claims of the caller's token."""

    prefix = PREFIX

    def __init__(self, stack: Stack) -> None:
        super().__init__(stack)
        self._rows = Rows(stack)
        self.asked = self._rows.asked
        self._secret = secrets.token_hex(32)
        self.objects: dict[str, bytes] = {}
        self.fault: int | None = None
        self.stuck: str | None = None

    def answered(self, handler: BaseHTTPRequestHandler, body: bytes) -> Answer:
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
