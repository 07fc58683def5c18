"""A project with Supabase Auth: the sign-up by address and password.

After supabase/auth: internal/api/signup.go, internal/api/errors.go and openapi.yaml.
"""

import json
import time
from http.server import BaseHTTPRequestHandler
from typing import Any
from uuid import uuid4

import psycopg

from local import access_tokens
from local.stack import Stack
from tests.project_server import Answer, ProjectServer, in_json


class AuthServer(ProjectServer):
    """`autoconfirm`: whether an address counts as confirmed at once. `fault`, if set, is the answer to every
    sign-up. `sign_ups` are the headers, in lower case, and the body of each."""

    prefix = "/auth/v1/signup"

    def __init__(self, stack: Stack) -> None:
        super().__init__(stack)
        self.autoconfirm = True
        self.fault: Answer | None = None
        self.sign_ups: list[tuple[dict[str, str], dict[str, Any]]] = []

    def answered(self, handler: BaseHTTPRequestHandler, body: bytes) -> Answer:
        headers = {name.lower(): value for name, value in handler.headers.items()}
        fields = json.loads(body)
        self.sign_ups.append((headers, fields))
        if self.fault:
            return self.fault
        if headers.get("apikey") != self._stack.publishable_key:
            return in_json({"message": "Invalid authentication credentials"}, 401)
        email = fields["email"].lower()
        user = {"id": str(uuid4()), "aud": "authenticated", "role": "", "email": email, "phone": ""}
        with psycopg.connect(self._stack.database_url()) as connection:
            added = connection.execute(
                "insert into auth.users (id, email) values (%s, %s) on conflict do nothing returning id",
                [user["id"], email],
            ).fetchone()
        if not self.autoconfirm:
            # The same for a registered address, with an id that no user has.
            return in_json({**user, "confirmation_sent_at": "2026-01-01T00:00:00Z", "identities": []})
        if not added:
            exists = {"code": 422, "error_code": "user_already_exists", "msg": "User already registered"}
            return in_json(exists, 422)
        token = access_tokens.user_token(self._stack.signing_key, self._stack.url, user["id"], email)
        session = {"token_type": "bearer", "expires_in": 3600, "expires_at": int(time.time()) + 3600}
        return in_json({"access_token": token, "refresh_token": "r-7f3x", "user": user, **session})
