"""The examples of both SDKs and of their pages, each as a program of its own, against the real stack."""

import sys
from pathlib import Path

import pytest
from reportlab.pdfgen.canvas import Canvas

from local import ROOT
from tests.conftest import People
from tests.external_programs import output_of, run_worker
from tests.sdk.python_client import SOURCE, address_of, key_of
from tests.sdk.typescript_package import Package, blocks

EXAMPLES = SOURCE / "examples"
DEPLOYMENT = "To deploy the application, build the container image and push it to the registry."
GUIDE = (
    DEPLOYMENT,
    "To roll the application back, deploy the image of the release before.",
    "The architecture has three parts: a gateway, a database and a worker.",
)
pytestmark = pytest.mark.usefixtures("no_jobs")


def run(command: list[str], people: People, folder: Path, **more: str) -> str:
    """What the example prints, as ann, with a worker beside and a PDF file in its folder."""
    canvas = Canvas(str(folder / "guide.pdf"))
    for line, text in enumerate(GUIDE):
        canvas.drawString(72, 720 - 20 * line, text)
    canvas.save()
    environment = {
        "MNEMOSYNE_API_KEY": key_of(people.ann),
        "MNEMOSYNE_BASE_URL": address_of(people.ann.stack),
    }
    with run_worker(people.ann.stack):
        return output_of(command, folder, {**environment, **more})


def run_python(script: Path, people: People, folder: Path) -> str:
    command = [sys.executable, "-W", "ignore::ResourceWarning", str(script)]
    return run(command, people, folder, PYTHONPATH=str(SOURCE / "src"))


def test_the_python_quickstart_answers_from_a_pdf(people: People, tmp_path: Path):
    output = run_python(EXAMPLES / "quickstart.py", people, tmp_path)
    assert output.startswith("Score: 0.")
    assert "Content: To deploy the application" in output
    assert output.count("build the container image") >= 2  # found, and answered
    assert "three parts" in output.rpartition("Content:")[2]


def test_the_python_streaming_example_prints_sources_and_continues_its_session(
    people: People, tmp_path: Path
):
    output = run_python(EXAMPLES / "streaming.py", people, tmp_path)
    assert output.count("from: Kettle") == 2
    assert "100 degrees" in output
    assert "1.7 litres" in output
    assert output.endswith("['user', 'assistant', 'user', 'assistant']\n")


def test_the_python_async_example_uploads_concurrently_and_pages_through_documents(
    people: People, tmp_path: Path
):
    output = run_python(EXAMPLES / "asynchronous.py", people, tmp_path)
    assert output.startswith("['Kettle', 'Oven', 'Toaster']\n")
    assert "two minutes" in output


def test_the_python_error_example_raises_each_of_its_errors(people: People, tmp_path: Path):
    assert run_python(EXAMPLES / "handling_errors.py", people, tmp_path).splitlines() == [
        "duplicate_document it is there already: True", "document_not_found 404",
        "failed: processing_failed", "APIConnectionError",
    ]  # fmt: skip


def test_every_python_example_is_run():
    ran = {"quickstart.py", "streaming.py", "asynchronous.py", "handling_errors.py"}
    assert {path.name for path in EXAMPLES.glob("*.py")} == ran


def test_the_typescript_examples_run_unchanged(typescript: Package, people: People):
    def output_of_example(script: str) -> str:
        return run(typescript.program(script), people, typescript.folder)

    quickstart = output_of_example("quickstart.js")
    assert "Score: " in quickstart
    results, answered = quickstart.split('\n"', 1)
    assert DEPLOYMENT in results
    assert DEPLOYMENT in answered
    # Only the stream is written without a line's end.
    assert quickstart.rpartition("\n")[2]
    streaming = output_of_example("streaming.js")
    assert "> And how do I roll it back?" in streaming
    assert streaming.count(" confidence)") == 2
    assert "4 messages kept" in streaming
    assert output_of_example("errors.js").splitlines() == [
        "the same name again: duplicate_collection", "too many at once: limit is not valid",
        "another id: there is no such thing (document_not_found)", "a wrong key: not a valid key (401)",
        "a server that is gone: nobody answers", "deleted: done",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("page", "language"),
    [
        ("docs/sdks.md", "python"), ("sdk/python/README.md", "python"),
        ("docs/sdks.md", "js"), ("sdk/typescript/README.md", "ts"),
    ],
)  # fmt: skip
def test_the_examples_of_the_documentation_answer_from_a_pdf(
    page: str, language: str, people: People, typescript: Package, tmp_path: Path
):
    """All blocks in that language as one program, with ann's key and the stack's address."""
    code = blocks((ROOT / page).read_text(), language)
    values = {
        "mn_live_...": key_of(people.ann),
        "https://your-domain.com/api/v1": address_of(people.ann.stack),
    }
    for placeholder, value in values.items():
        assert code.count(placeholder) == 1
        code = code.replace(placeholder, value)
    if language == "python":
        script = tmp_path / "example.py"
        script.write_text(code)
        output = run_python(script, people, tmp_path)
    else:
        script = typescript.folder / "example.mjs"
        script.write_text(code)
        output = run(["node", str(script)], people, typescript.folder)
    assert DEPLOYMENT in output
