"""LangChain and LlamaIndex with the Python SDK, in an environment of their own, against the real stack."""

import os
from collections.abc import Iterator

import pytest

from local import ROOT
from mnemosyne import Mnemosyne
from tests.conftest import People
from tests.external_programs import completed, run_worker
from tests.sdk.python_client import SOURCE, address_of, client_of, key_of

pytestmark = pytest.mark.usefixtures("no_jobs")
PYTHON = str(ROOT / ".venv-frameworks" / "bin" / "python")


def fill(client: Mnemosyne) -> str:
    collection = client.collections.create("kettles")
    documents = [
        client.documents.create_from_text(
            collection.id,
            f"The kettle of hall {hall} becomes {60 + hall} degrees hot.",
            title=f"Kettle {hall}",
            metadata={"hall": hall},
        )
        for hall in range(1, 6)
    ]
    for document in documents:
        client.documents.wait_until_ready(document.id)
    return collection.id


@pytest.fixture
def variables(people: People) -> Iterator[dict[str, str]]:
    """A key of ann's, and collections of ann and of bob, who is in another org."""
    with run_worker(people.ann.stack), client_of(people.ann) as ann, client_of(people.bob) as bob:
        yield {
            "FRAMEWORKS_COLLECTION": fill(ann), "FRAMEWORKS_OTHERS_COLLECTION": fill(bob),
            "MNEMOSYNE_API_KEY": key_of(people.ann), "MNEMOSYNE_BASE_URL": address_of(people.ann.stack),
            "PYTHONPATH": "src",
        }  # fmt: skip


def output_of(arguments: list[str], variables: dict[str, str]) -> str:
    result = completed([PYTHON, *arguments], cwd=SOURCE, env=os.environ | variables)
    assert result.returncode == 0, result.stdout[-5000:] + result.stderr[-2000:]
    return result.stdout


def test_the_frameworks_retrieve_and_answer(variables: dict[str, str]):
    assert " passed" in output_of(["-m", "pytest", "-q", "-p", "no:cacheprovider"], variables)


@pytest.mark.long
def test_the_documentation_s_examples_run(variables: dict[str, str]):
    langchain, history, llama_index = (
        code.partition("```")[0]
        .replace("mn_live_...", variables["MNEMOSYNE_API_KEY"])
        .replace("http://127.0.0.1:54321/api/v1", variables["MNEMOSYNE_BASE_URL"])
        .replace("What does error code E-42 mean?", "How hot does the kettle of hall 3 become?")
        for code in (ROOT / "docs" / "frameworks.md").read_text().split("```python\n")[1:]
    )
    model = """
from langchain_core.language_models import FakeListChatModel
model = FakeListChatModel(responses=["Hello, Ann."])
"""
    printed = output_of(["-c", langchain + model + history], variables)
    assert "Kettle 3 The kettle of hall 3" in printed
    assert "['I am Ann.', 'Hello, Ann.']" in printed
    assert "becomes 63 degrees hot" in output_of(["-c", llama_index], variables)
