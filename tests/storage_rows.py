"""The rows of the Storage that stands in for Supabase's, and its errors: read and written under the role and
the claims of who asks, as its server does."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from jose import JWTError, jwt

from local.stack import Stack
from tests.project_server import in_json


@dataclass(frozen=True)
class Operation:
    """One request: of which object, with what."""

    method: str
    path: str
    bucket: str
    name: str
    query: dict[str, str]
    headers: Any
    body: bytes

    @property
    def place(self) -> str:
        return f"{self.bucket}/{self.name}"


class StorageError(Exception):
    """As the server says it: nearly always under status 400, with its own in the body."""

    def __init__(self, status: int, error: str, message: str) -> None:
        super().__init__(message)
        self.answer = in_json({"statusCode": str(status), "error": error, "message": message}, 400)


class AccessDenied(StorageError):
    def __init__(self) -> None:
        super().__init__(403, "Unauthorized", "new row violates row-level security policy")


class NoKey(StorageError):
    def __init__(self) -> None:
        super().__init__(404, "not_found", "Object not found")


class Rows:
    """`asked` are the requests that came with a token, each with its claims."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self.asked: list[tuple[str, str, dict[str, Any]]] = []

    @contextmanager
    def as_caller(self, request: Operation) -> Iterator[tuple[Any, dict[str, Any]]]:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        try:
            claims = jwt.decode(token, self._stack.state.jwt_secret, "HS256", options={"verify_aud": False})
        except JWTError as invalid:
            raise StorageError(403, "Unauthorized", str(invalid)) from None
        self.asked.append((request.method, request.path, claims))
        with self.as_role(claims.get("role", "anon"), claims) as connection:
            yield connection, claims

    @contextmanager
    def as_role(self, role: str, claims: dict[str, Any]) -> Iterator[Any]:
        with psycopg.connect(self._stack.database_url("authenticator")) as connection:
            text = "set_config('role', %s, true), set_config('request.jwt.claims', %s, true)"
            try:
                connection.execute(f"select {text}".encode(), [role, json.dumps(claims)])
                yield connection
            except psycopg.errors.InsufficientPrivilege:
                raise AccessDenied from None
            except psycopg.errors.UniqueViolation:
                raise StorageError(409, "Duplicate", "The resource already exists") from None

    def bucket(self, bucket: str) -> Any:
        with self.as_role("service_role", {"role": "service_role"}) as connection:
            statement = "select file_size_limit from storage.buckets where id = %s"
            return connection.execute(statement, [bucket]).fetchone()
