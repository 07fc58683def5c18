"""All examples in the documentation of the SDKs, unchanged but for key and address, on the real stack."""

import re
import sys
from pathlib import Path

import pytest
from reportlab.pdfgen.canvas import Canvas

from local import ROOT
from tests.conftest import People
from tests.external_programs import output_of, run_worker
from tests.sdk.python_client import SOURCE, address_of, key_of
from tests.sdk.typescript_package import Package, blocks

GUIDE = "To deploy the application, build the container image and push it to the registry."
pytestmark = pytest.mark.usefixtures("no_jobs")


def example(readme: str, language: str, people: People) -> str:
    """All blocks in that language as one program, with ann's key and the stack's address."""
    code = blocks((ROOT / readme).read_text(), language)
    assert code.count("mn_live_...") == code.count("https://your-domain.com/api/v1") == 1
    address = address_of(people.ann.stack)
    return code.replace("mn_live_...", key_of(people.ann)).replace("https://your-domain.com/api/v1", address)


def guide(folder: Path) -> None:
    canvas = Canvas(str(folder / "guide.pdf"))
    canvas.drawString(72, 720, GUIDE)
    canvas.save()


@pytest.mark.parametrize("readme", ["docs/sdks.md", "sdk/python/README.md"])
def test_the_python_examples_answer_from_a_pdf(readme: str, people: People, tmp_path: Path):
    guide(tmp_path)
    script = tmp_path / "example.py"
    script.write_text(example(readme, "python", people))
    with run_worker(people.ann.stack):
        command = [sys.executable, "-W", "ignore::ResourceWarning", str(script)]
        output = output_of(command, tmp_path, {"PYTHONPATH": str(SOURCE / "src")})
    assert GUIDE in output
    assert re.search(r"guide|To deploy", output)


@pytest.mark.parametrize(("readme", "language"), [("docs/sdks.md", "js"), ("sdk/typescript/README.md", "ts")])
def test_the_javascript_examples_answer_from_a_pdf(
    readme: str, language: str, typescript: Package, people: People
):
    guide(typescript.folder)
    script = typescript.folder / "example.mjs"
    script.write_text(example(readme, language, people))
    with run_worker(people.ann.stack):
        output = output_of(["node", str(script)], typescript.folder, {})
    assert GUIDE in output
