"""Import of python-pptx without Pillow.

Written for python-pptx 1.0.2, which imports Pillow and calls it only for images that a program adds to
slides. Pillow's decoders have frequent advisories, and its current wheels do not run on Lambda's Python 3.11.
Hence the zip and the image do not contain it (requirements-excluded.txt).
Guarded by tests/shared/library_patches/test_pptx.py.
"""

import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any


def replace_missing_pillow() -> None:
    """Must precede the import of pptx."""
    if "PIL" not in sys.modules and find_spec("PIL") is None:
        pillow: Any = ModuleType("PIL")
        pillow.__spec__ = ModuleSpec("PIL", None)
        pillow.Image = pillow.ImageFont = None
        sys.modules["PIL"] = pillow
