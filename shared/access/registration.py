"""Registration: a new user of Supabase Auth, with an API key."""

from dataclasses import dataclass, field

from shared.access import api_keys
from shared.access.jwt_verifier import Verifier
from shared.clients.postgrest import Database
from shared.clients.supabase_auth import Auth
from shared.errors import NoOrg, RagError, RegisteredWithoutKey, Unauthorized
from shared.types import Scope

KEY = {"name": "Default API Key", "scopes": sorted(frozenset(Scope) - {Scope.ADMIN})}


@dataclass(frozen=True, slots=True)
class Registration:
    user_id: str
    email: str
    api_key: str = field(repr=False)


def register(auth: Auth, verifier: Verifier, database: Database, email: str, password: str) -> Registration:
    """Sign the user up, and create an API key with the user's own token, so that row security decides about
    it as about every key. Raises the errors of Auth.sign_up, NoOrg for a user who is a member of no org,
    and RegisteredWithoutKey for another failure after the sign-up, which cannot be repeated."""
    user = auth.sign_up(email, password)
    try:
        caller = verifier.principal(f"Bearer {user.access_token}")
    except Unauthorized:
        raise RegisteredWithoutKey(log_reason="a token that the settings do not accept") from None
    try:
        key = api_keys.create(database, caller, "live", KEY)
    except RagError as error:
        if error.code != NoOrg.code:
            raise RegisteredWithoutKey(log_reason=error.log_reason) from error
        raise NoOrg(
            f"The user {caller.user_id} is registered, and is a member of no org. Ask an admin to invite "
            "the user to one, sign in, accept, and create an API key with POST /api/keys."
        ) from None
    return Registration(caller.user_id, user.email, key["key"])
