"""Decoder of server-sent events from bytes, however they are divided (WHATWG HTML, 9.2)."""

import codecs
import re
from collections.abc import Iterator

# Not str.splitlines: a text may contain U+2028 and other separators.
_END = re.compile(r"\r\n|\n|\r")


class Decoder:
    """For each chunk of bytes, the name ("" for a message) and the data of the events that are complete.
    Comments and other fields are skipped."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("replace").decode
        self._rest: list[str] = []
        self._cut = False
        self._data: list[str] = []
        self._name = ""

    def feed(self, received: bytes) -> Iterator[tuple[str, str]]:
        text = self._decode(received)
        # The \n after a line that ended in \r belongs to that line's end.
        if self._cut and text:
            text = text.removeprefix("\n")
            self._cut = False
        if not _END.search(text):
            self._rest.append(text)
            return
        self._cut = text.endswith("\r")
        *lines, rest = _END.split("".join([*self._rest, text]))
        self._rest = [rest]
        for line in lines:
            if event := self._line(line):
                yield event

    def _line(self, line: str) -> tuple[str, str] | None:
        if not line:
            name, data = self._name, "\n".join(self._data)
            self._data, self._name = [], ""
            return (name, data) if data else None
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._name = "" if value == "message" else value
        return None
