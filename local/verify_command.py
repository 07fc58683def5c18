"""Command `verify` on the local stack."""

import argparse
import json
import sys
from contextlib import nullcontext

from local.stack import Stack
from verify.target_deployment import Deployment


def deployment_of(stack: Stack, url: str | None = None) -> Deployment:
    """The stack with its own functions, or with those at another address."""
    return Deployment(
        url=url or stack.url,
        project_url=stack.url,
        anon_key=stack.publishable_key,
        database_url=stack.database_url(),
        signing_key=stack.signing_key,
        functions_secret=stack.state.functions_secret,
        metrics_token=stack.state.metrics_token,
        worker_token=stack.state.worker_token,
        third_party_issuers=stack.state.third_party_issuers,
    )


def run(stack: Stack, options: argparse.Namespace) -> None:
    """Exits with the status of `verify`. Raises CommandError without a running stack."""
    # Its modules import all functions, which takes a second and reads the server's settings.
    from verify import command

    stack.require_up()
    deployment = deployment_of(stack)
    key = stack.signing_key
    state = stack.state
    secrets = [deployment.functions_secret, deployment.anon_key, state.password, state.jwt_secret]
    secrets += [state.metrics_token, state.worker_token, state.playground_secret]
    secrets.append(key if isinstance(key, str) else json.dumps(dict(key)))
    sys.exit(command.run(options, deployment.database_url, lambda _: nullcontext(deployment), secrets))
