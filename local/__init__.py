"""The stack without Docker, an operator's commands and build tools. No function imports them."""

from pathlib import Path

ROOT = Path(__file__).parent.parent
