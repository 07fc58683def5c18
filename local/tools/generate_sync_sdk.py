"""The synchronous half of the Python SDK, generated from the asynchronous half; a test compares them."""

import re
import subprocess
import sys

from local import ROOT

PACKAGE = ROOT / "sdk" / "python" / "src" / "mnemosyne"
SOURCE = PACKAGE / "aio"
# Modules that are written by hand for each half, or for one.
HANDWRITTEN = {"__init__.py", "clock.py", "keys.py", "realtime.py"}
# Patterns of whole words and their replacements, applied in this order.
REPLACEMENTS = (
    (r"[^\n]*  # asynchronous only\n", ""),
    (r"async def", "def"),
    (r"AsyncIterator", "Iterator"),
    (r"async with", "with"),
    (r"async for", "for"),
    (r"await ", ""),
    (r"mnemosyne\.aio\b", "mnemosyne"),
    (r"Callable\[\[([^\]]+)\], Awaitable\[([^\n]+)\]\]", r"Callable[[\1], \2]"),
    (r"Awaitable, ", ""),
    (r"import asyncio", "import time"),
    (r"asyncio\.sleep", "time.sleep"),
    (r"asyncio\.to_thread\(([\w.]+)\)", r"\1()"),
    (r"aclosing", "closing"),
    (r"aclose", "close"),
    (r"aread", "read"),
    (r"aiter_bytes", "iter_bytes"),
    (r"anext", "next"),
    (r"__a(iter|next|enter|exit)__", r"__\1__"),
    (r"Async(?=[A-Z])", ""),
)


def generate() -> dict[str, str]:
    """The text of each synchronous module, by its path in the package."""
    return {
        str(path.relative_to(SOURCE)): _synchronous(path.read_text(), path.name)
        for path in sorted(SOURCE.rglob("*.py"))
        if str(path.relative_to(SOURCE)) not in HANDWRITTEN
    }


def write() -> None:
    for name, text in generate().items():
        (PACKAGE / name).parent.mkdir(exist_ok=True)
        (PACKAGE / name).write_text(text)


def _synchronous(text: str, name: str) -> str:
    for pattern, replacement in REPLACEMENTS:
        text = re.sub(rf"(?<!\w){pattern}", replacement, text)
    header = "# Generated from aio/ by `make generated`. Do not edit.\n"
    return _format(header + text, name)


def _format(text: str, name: str) -> str:
    """Format the text: shorter words change line breaks and the order of imports, and `yield from` replaces a
    loop."""
    ruff = [sys.executable, "-m", "ruff"]
    location = ["--stdin-filename", str(PACKAGE / name), "-"]
    for command in (
        ["check", "--select", "I,UP028", "--fix", "--unsafe-fixes", "--quiet"],
        ["format", "--quiet"],
    ):
        process = subprocess.run(
            [*ruff, *command, *location], input=text, capture_output=True, text=True, check=True, cwd=ROOT
        )
        text = process.stdout
    return text
