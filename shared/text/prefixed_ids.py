"""Ids in requests."""

from uuid import UUID

from shared.errors import NotFound

# Stands for a user who was erased, for the anonymous caller of the index API, and for no session.
NIL = str(UUID(int=0))
# What stands before an id of each noun, where it is not the noun's first three letters.
_PREFIXES = {"workspace": "ws", "chunk": "chnk"}


def id_of(text: str, noun: str) -> str:
    """The id of a collection, a document or another noun: a UUID with or without its prefix (col_, doc_,
    org_, ws_, chnk_). Raises NotFound for an invalid one."""
    prefix = _PREFIXES.get(noun, noun[:3])
    try:
        return str(UUID(text.lower().removeprefix(f"{prefix}_")))
    except ValueError:
        raise NotFound(
            f"There is no such {noun}. Check its id.", code=f"{noun}_not_found", details={f"{noun}_id": text}
        ) from None


def id_with_prefix(prefix: str, id: object) -> str:
    return f"{prefix}_{id}"
