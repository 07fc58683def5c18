"""python -m local: the stack without Docker, and an operator's commands."""

import os
import sys
from collections.abc import Sequence

import httpx
import psycopg

from local.command_line import parser
from local.errors import CommandError
from local.stack import Stack
from local.stack_commands import psql
from shared.errors import ConfigurationError, RagError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command from `arguments`, by default the process's own. Returns the exit status."""
    options, rest = parser().parse_known_args(arguments)
    if rest and options.command is not psql:
        parser().error(f"unrecognized arguments: {' '.join(rest)}")
    options.further = rest
    try:
        options.command(Stack(options.data), options)
        sys.stdout.flush()
    except (CommandError, ConfigurationError, RagError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader of the output, such as head, has ended. The interpreter flushes stdout at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, psycopg.Error, httpx.HTTPError) as error:
        print(f"error: {_sentence(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename:
        return (
            f"{error.filename}: {error.strerror}; free some space, or choose another folder "
            "(TMPDIR for the demo, --data for a stack)"
        )
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


if __name__ == "__main__":
    sys.exit(main())
