"""Process that parses one file (parser_sandbox.py).

python -m shared.ingestion.parsers KIND SECONDS MEGABYTES <file >JSON
"""

import json
import resource
import sys
from dataclasses import asdict
from typing import Any

from shared.errors import UnreadableDocument
from shared.ingestion.parsers.parsed_file import MAX_CHARACTERS, READY, ParsedFile, parser_of, size_error
from shared.process_priority import lower_process_priority


def confine(seconds: int, megabytes: int) -> None:
    """Limit the time and memory of this process, and forbid it to write files."""
    resource.setrlimit(resource.RLIMIT_AS, (megabytes * 2**20,) * 2)
    # SIGXCPU first: the sandbox takes SIGKILL for the machine's lack of memory.
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main() -> None:
    lower_process_priority()
    kind, seconds, megabytes = sys.argv[1:]
    read = parser_of(kind)
    sys.stdout.write(READY)
    sys.stdout.flush()
    confine(int(seconds), int(megabytes))
    try:
        parsed: ParsedFile = read(sys.stdin.buffer.read())
        if sum(len(text) for _, text in parsed.parts) > MAX_CHARACTERS:
            raise size_error()
        reply: dict[str, Any] = asdict(parsed)
    except UnreadableDocument as error:
        reply = {"code": error.code, "message": str(error)}
    except MemoryError:
        reply = {"code": "file_too_large", "message": str(size_error())}
    except Exception as error:  # a library may raise anything for a broken file
        broken = UnreadableDocument()
        reply = {"code": broken.code, "message": str(broken), "because": type(error).__name__}
    sys.stdout.buffer.write(json.dumps(reply, ensure_ascii=False).encode(errors="surrogatepass"))


if __name__ == "__main__":
    main()
