"""The synchronous half of the Python SDK, generated from the asynchronous half; a test compares them.
`python -m local.generate_sync_sdk`."""

import re
import subprocess
import sys

from local import ROOT

PACKAGE = ROOT / "sdk" / "python" / "src" / "mnemosyne"
MADE_FROM = PACKAGE / "aio"
# Written by hand: the package's own front, and what the two halves do each in a way of its own.
NOT_MADE = {"__init__.py", "clock.py", "keys.py"}
# Of whole words and in this order.
WORDS = (
    (r"async def", "def"),
    (r"async with", "with"),
    (r"async for", "for"),
    (r"await ", ""),
    (r"mnemosyne\.aio\b", "mnemosyne"),
    (r"Callable\[\[(\w+)\], Awaitable\[([^\n]+)\]\]", r"Callable[[\1], \2]"),
    (r"Awaitable, ", ""),
    (r"import asyncio", "import time"),
    (r"asyncio\.sleep", "time.sleep"),
    (r"aclosing", "closing"),
    (r"aclose", "close"),
    (r"aread", "read"),
    (r"aiter_bytes", "iter_bytes"),
    (r"anext", "next"),
    (r"__a(iter|next|enter|exit)__", r"__\1__"),
    (r"Async(?=[A-Z])", ""),
)


def made() -> dict[str, str]:
    """What each synchronous module has in it, by its path below the package."""
    return {
        str(path.relative_to(MADE_FROM)): _synchronous(path.read_text(), path.name)
        for path in sorted(MADE_FROM.rglob("*.py"))
        if str(path.relative_to(MADE_FROM)) not in NOT_MADE
    }


def write() -> list[str]:
    for name, text in made().items():
        (PACKAGE / name).parent.mkdir(exist_ok=True)
        (PACKAGE / name).write_text(text)
    return list(made())


def _synchronous(text: str, name: str) -> str:
    for pattern, word in WORDS:
        text = re.sub(rf"(?<!\w){pattern}", word, text)
    head = "# Made from aio/ by `python -m local.generate_sync_sdk`: change that, and make this anew.\n"
    return _tidy(head + text, name)


def _tidy(text: str, name: str) -> str:
    """Shorter words bring other line breaks and another order of imports, and what only `async` lacks: yield
    from."""
    ruff = [sys.executable, "-m", "ruff"]
    place = ["--stdin-filename", str(PACKAGE / name), "-"]
    for command in (
        ["check", "--select", "I,UP028", "--fix", "--unsafe-fixes", "--quiet"],
        ["format", "--quiet"],
    ):
        done = subprocess.run(
            [*ruff, *command, *place], input=text, capture_output=True, text=True, check=True, cwd=ROOT
        )
        text = done.stdout
    return text


if __name__ == "__main__":
    print("\n".join(write()))
