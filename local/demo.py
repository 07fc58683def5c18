"""The demo: ingests documents, asks questions over HTTP and prints answers with citations."""

import textwrap
import tomllib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, cast

import psycopg
from rich.console import Console
from rich.markup import escape
from supabase import ClientOptions, FunctionsHttpError, create_client

from local.errors import CommandError
from local.seed_demo import COLLECTION, demo_files, ingest_files, principals_of
from local.shell_environment import settings_of_the_shell
from local.stack import Stack
from shared.clients.http_client import http_client
from shared.config import unknown_settings
from shared.errors import EmbeddingFailed
from shared.generation.extractive.answer import MODEL as EXTRACTIVE
from shared.models.embedding_roles import Role
from shared.models.model_check import error_of
from shared.services import Services

QUESTIONS = Path(__file__).parent / "questions.toml"
WIDTH = 110
STYLES = {"high": "green", "medium": "yellow", "low": "red"}


@dataclass(frozen=True)
class Question:
    """One entry of questions.toml."""

    asker: str
    call: str
    text: str
    filters: dict[str, str] = field(default_factory=dict)
    expects: str | None = None
    note: str | None = None


def questions() -> list[Question]:
    return [Question(**entry) for entry in tomllib.loads(QUESTIONS.read_text())["question"]]


def ask(url: str, publishable_key: str, token: str, question: Question) -> dict[str, Any]:
    """The function's answer to a question, by the client that Supabase applications use. Raises CommandError
    for an error of the function."""
    call = {
        "body": {"query_text": question.text, "filters": question.filters},
        "responseType": "json",
    }
    with http_client(60) as connections:
        options = ClientOptions(headers={"Authorization": f"Bearer {token}"}, httpx_client=connections)
        supabase = create_client(url, publishable_key, options)
        try:
            return cast("dict[str, Any]", supabase.functions.invoke(f"rag-{question.call}", call))
        except FunctionsHttpError as error:
            raise CommandError(f"{question.text!r} got {error.status}: {error.message}") from None


def run(stack: Stack, services: Services, console: Console) -> None:
    """Ingest the corpus, ask every question as its user and print the answers."""
    started = perf_counter()
    documents, chunks = ingest(stack, services, console)
    console.print(f"{documents} documents, {chunks} chunks, {perf_counter() - started:.1f} s\n")
    confidences: Counter[str] = Counter()
    asker = None
    for question in questions():
        if question.asker != asker:
            asker = question.asker
            console.rule(f"[bold]{asker}", align="left")
        body = ask(stack.url, stack.publishable_key, stack.token(question.asker), question)
        show(question, body, console)
        if "answer" in body:
            confidences[body["answer"]["confidence"]] += 1
    counts = ", ".join(f"{confidences[level]} {level}" for level in STYLES)
    console.print(f"Confidence of the answers: {counts}.")
    console.print("To ask your own questions in a browser: make serve, and open the address that it prints.")


def show(question: Question, body: dict[str, Any], console: Console) -> None:
    """One question and its answer, with citations or results, confidence and time."""
    console.print(f"[bold]{escape(question.text)}[/bold]")
    if question.filters:
        filters = ", ".join(f"{name} {value}" for name, value in question.filters.items())
        console.print(f"  [dim]only {escape(filters)}[/dim]", soft_wrap=True)
    if question.note:
        console.print(f"  [dim]({escape(question.note)})[/dim]")
    milliseconds = body["processing_time_ms"]
    if "results" in body:
        results, total = body["results"][:3], body["total_found"]
        console.print(
            f"  [cyan]search[/cyan]: the first {len(results)} of {total} passages, {milliseconds} ms"
        )
        for result in results:
            _passage(result["rank"], result["score"], result, console)
    else:
        answer, detail = body["answer"], body["confidence_detail"]
        level, limits = answer["confidence"], detail["thresholds"]
        writer = f"written by {escape(answer['model'])}" if answer["model"] else "no model asked"
        writer = "extracted sentences" if answer["model"] == EXTRACTIVE else writer
        console.print(
            f"  [{STYLES[level]}]{level} confidence[/] (score {detail['score']:.2f}, "
            f"high from {limits['high']}, medium from {limits['medium']}), {milliseconds} ms, {writer}",
            soft_wrap=True,
        )
        for paragraph in filter(None, answer["text"].split("\n")):
            wrapped = textwrap.fill(paragraph, WIDTH - 4, initial_indent="  ", subsequent_indent="  ")
            line(console, wrapped)
        for number, citation in enumerate(body["citations"][:3], start=1):
            _passage(number, citation["relevance_score"], citation, console)
    console.print()


def _passage(number: int, score: float, passage: dict[str, Any], console: Console) -> None:
    title = f"[{number}] {passage['source_title']} ({passage['source_type']})"
    one_line = textwrap.shorten(passage["snippet"], max(20, WIDTH - len(title) - 14), placeholder=" ...")
    console.print(f"    [dim]{score:.2f}[/dim] {escape(title)} [dim]{escape(one_line)}[/dim]", soft_wrap=True)


def is_ingested(stack: Stack, services: Services) -> bool:
    """Whether all of the demo's documents are present, embedded by the present model."""
    with psycopg.connect(stack.database_url()) as connection:
        row = connection.execute(
            "select count(distinct document_id) from rag.chunks join rag.collections "
            "on collections.id = collection_id where collections.name = %s and embedding_model = %s",
            [COLLECTION, services.embedder.model],
        ).fetchone()
    return row is not None and row[0] >= len(demo_files())


def ingest(stack: Stack, services: Services, console: Console) -> tuple[int, int]:
    """Ingest the demo's documents; the numbers of documents and chunks. Completes an interrupted run. Raises
    CommandError for a remote embedder that fails."""
    try:
        return ingest_files(services, demo_files(), principals_of(stack), console)
    except EmbeddingFailed as error:
        if not services.embedder.remote:
            raise
        raise CommandError(
            f"RAG_EMBEDDING_URL {services.settings.rag_embedding_url} did not embed with the model "
            f"{services.embedder.model} ({error.log_reason}); check both, and OPENAI_API_KEY"
        ) from None


def line(console: Console, text: str) -> None:
    """Print the text as it is."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def models_of(services: Services) -> str:
    """The models that embed and answer, with their addresses. Asks no service."""
    settings, gateway, embedder = services.settings, services.chat_gateway, services.embedder
    where = f"at {settings.rag_embedding_url}" if embedder.remote else "on this machine"
    answers = f"{gateway.model} at {settings.rag_llm_url}" if gateway else "extracted sentences"
    return f"Embeddings: {embedder.model} {where}. Answers: {answers}."


def report_models(services: Services, console: Console) -> None:
    """Print which variables of the shell are used, and which models they name. Asks no service."""
    line(console, f"From the shell: {', '.join(settings_of_the_shell()) or 'no setting'}")
    if unknown := unknown_settings():
        line(console, f"Ignored, since no setting has this name: {', '.join(unknown)}")
    line(console, models_of(services))


def try_models(services: Services, console: Console) -> None:
    """Request a word of each model that is a service, and print whether it answers."""
    if services.embedder.remote:
        try:
            services.embedder.embed(["start"], Role.QUESTION)
            state = "The embedding model answers."
        except EmbeddingFailed as error:
            state = f"The embedding model does not answer: {error} ({error.log_reason})"
        line(console, state)
    if gateway := services.chat_gateway:
        failure = error_of(gateway, services.settings.rag_llm_timeout_seconds)
        state = f"does not answer: {failure} ({failure.log_reason})" if failure else "answers."
        line(console, f"The answering model {state}")


def introduce(stack: Stack, console: Console) -> None:
    """Print addresses, tokens and curl commands to copy."""
    line(console, f"\nURL              {stack.url}\npublishable key  {stack.publishable_key}")
    line(console, f"playground       {stack.playground}")
    for email, text in (
        ("tomas@halden.example", "What does error code E-42 mean?"),
        ("emil@brightwater.example", "Above which temperature do we reject milk?"),
    ):
        token = stack.token(email)
        line(console, f"\n{email}\n{token}\n")
        line(
            console,
            f"curl -s {stack.url}/functions/v1/rag-answer -H 'Authorization: Bearer {token}' "
            f"-H 'Content-Type: application/json' -d '{{\"query_text\": \"{text}\"}}'",
        )
    line(
        console,
        "\nTo administer an org: sign in to the playground as ines@halden.example, and open Administration.",
    )
    line(console, "To prove that orgs are kept apart: .venv/bin/python -m local verify")
    line(console, "\nCtrl-C stops everything.")
