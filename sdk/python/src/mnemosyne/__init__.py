"""Client of the Mnemosyne API: documents in, passages and grounded answers out.

from mnemosyne import Mnemosyne
client = Mnemosyne(api_key="mn_live_...")
"""

from mnemosyne.aio import AsyncMnemosyne, AsyncPage, AsyncStream
from mnemosyne.client import Mnemosyne
from mnemosyne.errors import (
    APIConnectionError,
    APIError,
    APITimeoutError,
    AuthenticationError,
    BadRequestError,
    ConfigurationError,
    ConflictError,
    DocumentFailedError,
    InternalServerError,
    MnemosyneError,
    NotFoundError,
    PayloadTooLargeError,
    PermissionDeniedError,
    RateLimitError,
    StreamInterruptedError,
    UnexpectedResponseError,
    UploadFailedError,
    ValidationError,
)
from mnemosyne.pages import Page
from mnemosyne.streaming import Stream
from mnemosyne.version import __version__

__all__ = [
    "APIConnectionError",
    "APIError",
    "APITimeoutError",
    "AsyncMnemosyne",
    "AsyncPage",
    "AsyncStream",
    "AuthenticationError",
    "BadRequestError",
    "ConfigurationError",
    "ConflictError",
    "DocumentFailedError",
    "InternalServerError",
    "Mnemosyne",
    "MnemosyneError",
    "NotFoundError",
    "Page",
    "PayloadTooLargeError",
    "PermissionDeniedError",
    "RateLimitError",
    "Stream",
    "StreamInterruptedError",
    "UnexpectedResponseError",
    "UploadFailedError",
    "ValidationError",
    "__version__",
]
