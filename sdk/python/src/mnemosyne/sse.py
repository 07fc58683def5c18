"""Server-sent events out of bytes, however these are cut into packets (WHATWG HTML, 9.2)."""

import codecs
import re
from collections.abc import Iterator

# Not as str.splitlines has it: a text may hold U+2028 and its like.
_END = re.compile(r"\r\n|\n|\r")


class Decoder:
    """Fed with bytes, it gives the data of each event that is whole by then. Comments, other fields and
    events of a name are skipped: this API has none."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("replace").decode
        self._rest: list[str] = []
        self._cut = False
        self._data: list[str] = []
        self._named = False

    def feed(self, received: bytes) -> Iterator[str]:
        text = self._decode(received)
        # A line that ended in \r may go on with the \n that belongs to it.
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
            if (data := self._line(line)) is not None:
                yield data

    def _line(self, line: str) -> str | None:
        if not line:
            data, named = "\n".join(self._data), self._named
            self._data, self._named = [], False
            return data if data and not named else None
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._named = value not in ("", "message")
        return None
