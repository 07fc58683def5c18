"""Slides are read where Pillow is not installed, as in the zip and in the image."""

import subprocess
import sys

from local import ROOT
from tests.shared import sample_files

READ = """
import importlib.machinery, sys
find = importlib.machinery.PathFinder.find_spec
sys.meta_path[-1] = type("WithoutPillow", (), {
    "find_spec": lambda name, *more: None if name.partition(".")[0] == "PIL" else find(name, *more)
})
from shared.ingestion.parsers.powerpoint import pptx
print(pptx(sys.stdin.buffer.read()).parts)
print(sys.modules["PIL"].Image)
"""


def test_slides_are_read_without_pillow():
    process = subprocess.run(
        [sys.executable, "-c", READ], input=sample_files.pptx(), capture_output=True, cwd=ROOT, check=False
    )
    assert process.returncode == 0, process.stderr.decode()
    parts, pillow = process.stdout.decode().splitlines()
    assert "Notes: " in parts
    assert pillow == "None"
