"""Database, settings and API that an operator's command works on: the options' or the local stack's."""

import os
from argparse import Namespace
from collections.abc import Callable

import httpx

from local.errors import CommandError
from local.operations.api_client import http_client
from local.seed_demo import settings_of
from local.stack import Stack
from shared.config import Settings, read_settings

Command = Callable[[Stack, Namespace], None]


def on_database(run: Callable[[str, Namespace], None]) -> Command:
    """A command on the database of --database, by default the stack's."""
    return lambda stack, options: run(_database_url(stack, options), options)


def on_database_with_settings(run: Callable[[str, Settings, Namespace], None]) -> Command:
    """A command that also embeds: with the settings of the environment, or the stack's."""

    def command(stack: Stack, options: Namespace) -> None:
        url = _database_url(stack, options)
        run(url, read_settings() if options.database else settings_of(stack), options)

    return command


def on_database_as_user(run: Callable[[str, Settings, Namespace], None]) -> Command:
    """A command that also searches as --user of the stack, whose token it has as an option."""

    def command(stack: Stack, options: Namespace) -> None:
        if options.user and options.database:
            raise CommandError("--user is of the local stack: with --database, set RAG_TOKEN")
        options.token = stack.token(options.user) if options.user else None
        on_database_with_settings(run)(stack, options)

    return command


def on_api(run: Callable[[httpx.Client, Namespace], None]) -> Command:
    """A command on the API of --url with the credential in RAG_TOKEN, by default on the stack's as --user."""

    def command(stack: Stack, options: Namespace) -> None:
        with _api(stack, options) as client:
            run(client, options)

    return command


def _database_url(stack: Stack, options: Namespace) -> str:
    if options.database:
        return str(options.database)
    stack.require_up()
    return stack.database_url()


def _api(stack: Stack, options: Namespace) -> httpx.Client:
    if not options.url:
        if not options.user:
            raise CommandError("name a user of the local stack with --user EMAIL, or a deployment with --url")
        return http_client(stack.url, stack.token(options.user))
    if "RAG_TOKEN" not in os.environ:
        raise CommandError("--url needs a token or an API key in the environment variable RAG_TOKEN")
    return http_client(options.url, os.environ["RAG_TOKEN"])
