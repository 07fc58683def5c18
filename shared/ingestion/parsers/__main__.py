"""One file read, in a process of its own (sandbox.py).

python -m shared.ingestion.parsers KIND SECONDS MEGABYTES <the file >what it says, as JSON
"""

import json
import resource
import sys
from importlib import import_module
from typing import Any

from shared.errors import UnreadableDocument
from shared.ingestion.parsers.base import MAX_CHARACTERS, READY, Reading, too_large

BROKEN = "The file is broken, or not what it seems."
READERS = {
    "pdf": "pdf", "docx": "office", "pptx": "office", "xlsx": "office",
    "picture": "ocr", "html": "html_xml", "xml": "html_xml", "epub": "html_xml", "code": "code",
    "csv": "csv_json", "json": "csv_json",
}  # fmt: skip


def confine(seconds: int, megabytes: int) -> None:
    """This process has so much time and memory from now on, and writes no file."""
    resource.setrlimit(resource.RLIMIT_AS, (megabytes * 2**20,) * 2)
    # Told first, then killed: who is killed at once was it for the machine's want of memory.
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main() -> None:
    kind, seconds, megabytes = sys.argv[1:]
    read = getattr(import_module(f"shared.ingestion.parsers.{READERS[kind]}"), kind)
    sys.stdout.write(READY)
    sys.stdout.flush()
    confine(int(seconds), int(megabytes))
    try:
        reading: Reading = read(sys.stdin.buffer.read())
        if sum(len(text) for _, text in reading.parts) > MAX_CHARACTERS:
            raise too_large()
        reply: dict[str, Any] = {"parts": reading.parts, "title": reading.title}
    except UnreadableDocument as error:
        reply = {"code": error.code, "message": str(error)}
    except MemoryError:
        reply = {"code": "file_too_large", "message": str(too_large())}
    except Exception as error:  # whatever a library makes of a broken file
        reply = {
            "code": UnreadableDocument.code,
            "message": BROKEN,
            "because": type(error).__name__,
        }
    sys.stdout.buffer.write(json.dumps(reply, ensure_ascii=False).encode(errors="surrogatepass"))


if __name__ == "__main__":
    main()
