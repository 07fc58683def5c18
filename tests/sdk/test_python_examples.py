"""The Python SDK's examples, each as a program of its own, against the real stack."""

import sys
from pathlib import Path

import pytest
from reportlab.pdfgen.canvas import Canvas

from tests.conftest import People
from tests.external_programs import output_of, run_worker
from tests.sdk.python_client import SOURCE, address_of, key_of

EXAMPLES = SOURCE / "examples"
GUIDE = (
    "To deploy the application, build the container image and push it to the registry.",
    "The architecture has three parts: a gateway, a database and a worker.",
)
pytestmark = pytest.mark.usefixtures("no_jobs")


def run(name: str, people: People, folder: Path) -> str:
    """As ann, with a worker beside; what the example prints."""
    stack = people.ann.stack
    environment = {
        "PYTHONPATH": str(SOURCE / "src"),
        "MNEMOSYNE_API_KEY": key_of(people.ann),
        "MNEMOSYNE_BASE_URL": address_of(stack),
    }
    with run_worker(stack):
        command = [sys.executable, "-W", "ignore::ResourceWarning", str(EXAMPLES / name)]
        return output_of(command, folder, environment)


def test_the_quickstart_is_the_contract_s_code_and_answers_from_a_pdf(people: People, tmp_path: Path):
    canvas = Canvas(str(tmp_path / "guide.pdf"))
    for line, text in enumerate(GUIDE):
        canvas.drawString(72, 720 - 20 * line, text)
    canvas.save()
    output = run("quickstart.py", people, tmp_path)
    assert output.startswith("Score: 0.")
    assert "Content: To deploy the application" in output
    assert output.count("build the container image") >= 2  # found, and answered
    assert "three parts" in output.rpartition("Content:")[2]


def test_the_streaming_example_prints_sources_and_continues_its_session(people: People, tmp_path: Path):
    output = run("streaming.py", people, tmp_path)
    assert output.count("from: Kettle") == 2
    assert "100 degrees" in output
    assert "1.7 litres" in output
    assert output.endswith("['user', 'assistant', 'user', 'assistant']\n")


def test_the_async_example_uploads_concurrently_and_pages_through_documents(people: People, tmp_path: Path):
    output = run("asynchronous.py", people, tmp_path)
    assert output.startswith("['Kettle', 'Oven', 'Toaster']\n")
    assert "two minutes" in output


def test_the_error_example_raises_each_of_its_errors(people: People, tmp_path: Path):
    assert run("handling_errors.py", people, tmp_path).splitlines() == [
        "duplicate_document it is there already: True", "document_not_found 404",
        "failed: processing_failed", "APIConnectionError",
    ]  # fmt: skip


def test_every_example_is_run(people: People):
    ran = {"quickstart.py", "streaming.py", "asynchronous.py", "handling_errors.py"}
    assert {path.name for path in EXAMPLES.glob("*.py")} == ran
