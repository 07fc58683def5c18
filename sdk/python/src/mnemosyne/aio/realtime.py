"""Pauses that end when Supabase Realtime reports a change. There is no synchronous twin: the synchronous
client of supabase-py has no Realtime."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, ClassVar, Protocol
from weakref import WeakKeyDictionary

from mnemosyne.models.document import Document
from mnemosyne.retries import Waiting

# Between two polls while changes are reported: a message may be lost.
POLL_SECONDS = 10.0


class Realtime(Protocol):
    """An asynchronous client of supabase-py with the user's token, or its `realtime`. Where it fails, the
    wait polls as without it."""

    def get_channels(self) -> Sequence[Any]: ...
    def channel(self, topic: str, params: Any = None) -> Any: ...
    async def remove_channel(self, channel: Any) -> None: ...


class Changes:
    """The changes of one document, until it is closed. After a failure of Realtime there are none."""

    def __init__(self, client: Realtime, waiting: Waiting) -> None:
        self._client, self._waiting = client, waiting
        self._subscription: _Subscription | None = None
        self._id = ""
        self._changed = asyncio.Event()

    async def aclose(self) -> None:
        if self._subscription:
            self._subscription.waits.discard(self)
            if self._subscription.joining and not self._subscription.waits:
                await asyncio.wait([self._subscription.leave()])

    async def pause(self, seconds: float, document: Document | None) -> None:
        """Wait so long, or until the document or its channel changes, and longer while changes are reported.
        Without a document the server has asked for the pause, or is gone."""
        if document is None:
            await asyncio.sleep(seconds)
            return
        if self._subscription is None:
            self._id = document.id
            topic = ":".join(filter(None, ("rag", document.org_id, document.owner_id)))
            self._subscription = _Subscription.of(self._client, topic)
            self._subscription.waits.add(self)
            if self._subscription.is_joined:
                # A change before now was reported to other waits alone.
                return
        elif self._subscription.is_joined:
            seconds = min(POLL_SECONDS, self._waiting.left)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._changed.wait(), seconds)
        self._changed.clear()

    def report(self, document_id: str | None = None) -> None:
        """A document of the channel has changed, or the channel."""
        if document_id in (None, self._id):
            self._changed.set()


class _Subscription:
    """A channel. All waits for its documents share it, since a client has one channel of a name."""

    _all: ClassVar[WeakKeyDictionary[Realtime, dict[str, "_Subscription"]]] = WeakKeyDictionary()

    def __init__(self, client: Realtime, topic: str) -> None:
        self.is_joined = False
        self.waits: set[Changes] = set()
        self._client, self._topic = client, topic
        self._channel: Any = None
        self.joining: asyncio.Task[None] | None = None
        self._leaving: asyncio.Task[None] | None = None

    @classmethod
    def of(cls, client: Realtime, topic: str) -> "_Subscription":
        channels = cls._all.setdefault(client, {})
        if topic in channels:
            return channels[topic]
        made = cls(client, topic)
        with suppress(Exception):
            # A channel that the caller has opened stays the caller's own.
            if all(channel.topic != f"realtime:{topic}" for channel in client.get_channels()):
                made._channel = client.channel(topic, {"config": {"private": True}})
                # To connect takes long where the server is gone.
                made.joining = asyncio.create_task(made._join())
                channels[topic] = made
        return made

    def leave(self) -> asyncio.Task[None]:
        if not self._leaving:
            # Before the task runs: no other wait may join.
            self.is_joined = False
            del self._all[self._client][self._topic]
            self._leaving = asyncio.create_task(self._leave())
        return self._leaving

    async def _join(self) -> None:
        try:
            self._channel.on_broadcast("document", self._report)
            await self._channel.subscribe(self._change)
        except Exception:
            self._change("CLOSED", None)

    def _report(self, message: Any) -> None:
        for wait in self.waits:
            wait.report(message["payload"].get("id", ""))

    def _change(self, state: str, _: Exception | None) -> None:
        if self._leaving:
            return
        self.is_joined = state == "SUBSCRIBED"
        if not self.is_joined:
            # The client would join again and again.
            self.leave()
        for wait in self.waits:
            wait.report()

    async def _leave(self) -> None:
        with suppress(Exception):
            # The server may be gone.
            async with asyncio.timeout(2):
                await self._client.remove_channel(self._channel)
        if self.joining:
            self.joining.cancel()
