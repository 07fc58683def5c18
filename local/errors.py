"""Error of the commands of this package."""


class CommandError(RuntimeError):
    """A command cannot do its work; the message says why, and what to do."""
