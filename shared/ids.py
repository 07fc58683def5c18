"""Ids as clients send them."""

from uuid import UUID

from shared.errors import NotFound


def id_of(text: str, noun: str) -> str:
    """The id of a collection or a document, as the noun says: a UUID, with or without its prefix (col_ or
    doc_). Raises NotFound for what cannot be anybody's."""
    try:
        return str(UUID(text.removeprefix(f"{noun[:3]}_")))
    except ValueError:
        raise NotFound(
            f"There is no such {noun}.", code=f"{noun}_not_found", details={f"{noun}_id": text}
        ) from None
