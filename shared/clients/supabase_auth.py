"""Client of Supabase Auth: the sign-up of a user with the anon key.

The client does not pass on Auth's messages. No error or log contains the password.
"""

from dataclasses import dataclass, field
from typing import Any

import httpx

from shared.clients.http_client import deadline, http_client
from shared.errors import AuthFailed, Forbidden, InvalidRequest, RagError, RateLimited

SECONDS = 10.0
# Where Supabase Auth names no time to wait.
RETRY_SECONDS = "60"


@dataclass(frozen=True, slots=True)
class SignedUpUser:
    email: str
    access_token: str = field(repr=False)


class Auth:
    """Safe to use from many threads."""

    def __init__(self, supabase_url: str, anon_key: str) -> None:
        self._url = f"{supabase_url}/auth/v1/signup"
        self._headers = {"apikey": anon_key}
        self._client = http_client(SECONDS)

    def sign_up(self, email: str, password: str) -> SignedUpUser:
        """The new user, with a token. Never repeated, since a lost response may belong to a new user.

        Raises InvalidRequest for a registered address and for a refused address or password, Forbidden if
        the address must be confirmed first or the project allows no sign-up, RateLimited, AuthFailed.
        """
        body = {"email": email, "password": password}
        try:
            with deadline(SECONDS):
                response = self._client.post(self._url, json=body, headers=self._headers)
        except httpx.RequestError as error:
            raise AuthFailed(log_reason=type(error).__name__) from None
        try:
            content = response.json()
        except ValueError:
            content = None
        if not response.is_success:
            raise _error(response, content if isinstance(content, dict) else {})
        match content:
            case {"access_token": str(token), "user": {"email": str(registered)}}:
                return SignedUpUser(registered, token)
            # Auth also returns a made-up user for an address that is already confirmed.
            case {"id": str(), "email": _}:
                raise Forbidden(
                    "Supabase Auth sent an e-mail to confirm this address. Follow its link, sign in, and "
                    "create an API key with POST /api/keys.",
                    code="email_not_confirmed",
                )
        raise AuthFailed(log_reason="malformed response")

    def close(self) -> None:
        self._client.close()


def _error(response: httpx.Response, content: dict[str, Any]) -> RagError:
    """`error_code` is the cause; in newer versions of the API `code` is, which was the status before."""
    code = content.get("error_code") or content.get("code")
    log_reason = f"auth {response.status_code}"
    match code:
        case "user_already_exists" | "email_exists":
            return InvalidRequest(
                "This address is registered already. Sign in, and create an API key with POST /api/keys.",
                code="email_registered",
            )
        case "weak_password":
            return InvalidRequest(
                "The password does not meet the project's rules. Choose a longer one.", code="weak_password"
            )
        case "validation_failed" | "email_address_invalid" | "email_address_not_authorized":
            return InvalidRequest(
                "Supabase Auth does not accept this address and password. Use others.",
                code="registration_refused",
            )
        case "signup_disabled" | "email_provider_disabled" | "captcha_failed":
            return Forbidden(
                "The project's Auth settings do not allow this registration. Ask its operator.",
                code="registration_off",
            )
    if response.status_code == 429:
        seconds = response.headers.get("retry-after", "")
        return RateLimited(headers={"Retry-After": seconds if seconds.isdecimal() else RETRY_SECONDS})
    return AuthFailed(log_reason=log_reason)
