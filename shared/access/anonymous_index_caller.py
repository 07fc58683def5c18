"""Anonymous access to the index API: off unless settings name an org and a member."""

import logging

from shared.access.token_signer import Signer
from shared.config import Settings
from shared.errors import ConfigurationError
from shared.types import Principal, Scope

log = logging.getLogger("rag")


def anonymous_principal(
    settings: Settings, signer: Signer | None, credential: str | None, origin: str | None
) -> Principal | None:
    """The caller of a request without a credential, if the settings allow it. A request of a web page needs
    an allowed origin, since a browser in the private network also opens pages of other origins. Raises
    ConfigurationError."""
    if credential is not None or (origin is not None and origin not in settings.rag_cors_origins):
        return None
    return _principal_of(settings, signer)


def _principal_of(settings: Settings, signer: Signer | None) -> Principal | None:
    """The member of the settings, with every scope but admin; None without such settings. Raises
    ConfigurationError for an incomplete setting, or without a key to sign with."""
    org, user = settings.rag_index_anonymous_org, settings.rag_index_anonymous_user
    if org is user is None:
        return None
    if org is None or user is None:
        raise ConfigurationError(
            "RAG_INDEX_ANONYMOUS_ORG: set it together with RAG_INDEX_ANONYMOUS_USER, a member of that org"
        )
    if signer is None:
        raise ConfigurationError(
            "RAG_INDEX_ANONYMOUS_ORG: set RAG_SIGNING_KEY or SUPABASE_JWT_SECRET too, which sign its token"
        )
    scopes = frozenset(Scope) - {Scope.ADMIN}
    # Documents of this caller do not belong to the member: rag.creator_id().
    claims = {"org": str(org), "scopes": sorted(scopes), "anonymous": True}
    return Principal(str(user), signer.token(sub=str(user), rag=claims), scopes)


def warn_if_anonymous(settings: Settings, signer: Signer | None) -> bool:
    """Whether requests without a credential are allowed, which the log then warns of. Raises
    ConfigurationError."""
    if _principal_of(settings, signer) is None:
        return False
    log.warning(
        "RAG_INDEX_ANONYMOUS_ORG is set: every client that reaches this server may read, write, persist and "
        "delete the indexes of org %s, and use its model, WITHOUT A CREDENTIAL. Use it in private networks "
        "alone.",
        settings.rag_index_anonymous_org,
    )
    return True
