"""Download links to original files, which act as the user who created them.

A link carries a signed payload that only its route accepts; it is not an access token. Its requests count for
the link, not for the user, since every holder of the link can send them.
"""

import re
import time
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Any
from urllib.parse import urlsplit

from shared.access.token_signer import CALL_SECONDS, BadSignature, Signer
from shared.config import Settings
from shared.errors import PublicUrlUnset, Unauthorized
from shared.types import Principal, Scope

LIFETIME_SECONDS, MAX_LIFETIME_SECONDS = 900, 24 * 60 * 60
PURPOSE = "links to originals"
# Names of this machine, with any port.
LOOPBACK = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?")


@dataclass(frozen=True, slots=True)
class Link:
    """The document is read as the user `user_id`; `expires` is in seconds since the epoch. `as_admin`: it is
    another user's private document, which only an admin of the org may read."""

    document_id: str
    org_id: str
    user_id: str
    as_admin: bool
    expires: int


def link_to(signer: Signer, link: Link) -> str:
    return signer.sign(PURPOSE, astuple(link))


def public_url(settings: Settings, scheme: str, host: str, lambda_host: str | None = None) -> str:
    """The base URL of links: RAG_PUBLIC_URL, or one that the client cannot choose. `scheme` and `host` are
    the request's; `lambda_host` is the host name that AWS reports.

    Raises PublicUrlUnset for a host that is neither SUPABASE_URL's nor this machine's.
    """
    if settings.rag_public_url is not None:
        return settings.rag_public_url
    if lambda_host:
        return f"https://{lambda_host}"
    project = urlsplit(settings.supabase_url)
    if host.lower() == project.netloc.lower():
        return f"{project.scheme}://{project.netloc}"
    if LOOPBACK.fullmatch(host.lower()):
        return f"{scheme}://{host.lower()}"
    raise PublicUrlUnset


def new_link(
    caller: Principal, document: Mapping[str, Any], lifetime_seconds: int = LIFETIME_SECONDS
) -> Link:
    """A link to a document that the caller may read."""
    as_admin = document["owner_id"] not in (None, caller.user_id)
    expires = int(time.time()) + lifetime_seconds
    return Link(document["id"], document["org_id"], caller.user_id, as_admin, expires)


def principal_of(signer: Signer, payload: str, document_id: str) -> Principal:
    """The user of the link, with a token that reads documents of its org alone.

    Raises Unauthorized for a payload that is not signed here, is another document's, or has expired.
    """
    try:
        link = Link(*signer.verified(PURPOSE, payload))
    except BadSignature:
        raise Unauthorized("The link is not valid. Request another.") from None
    if link.document_id != document_id:
        raise Unauthorized("The link is not valid. Request another.")
    if link.expires < time.time():
        raise Unauthorized("The link has expired. Request another.")
    scopes = [Scope.DOCUMENTS_READ, *([Scope.ADMIN] if link.as_admin else [])]
    claims = {"org": link.org_id, "scopes": scopes, "document": link.document_id}
    token = signer.token(CALL_SECONDS, sub=link.user_id, rag=claims)
    return Principal(link.user_id, token, frozenset(scopes))
