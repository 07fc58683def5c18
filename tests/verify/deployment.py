"""The test stack as the sweep sees a deployment."""

from local.stack import Stack
from verify.target_deployment import Deployment


def deployment_of(stack: Stack, url: str | None = None) -> Deployment:
    """The stack's own functions, or those at another address."""
    return Deployment(
        url=url or stack.url,
        project_url=stack.url,
        anon_key=stack.anon_key,
        database_url=stack.database_url(),
        signing_key=stack.signing_key,
        functions_secret=stack.state.functions_secret,
        metrics_token=stack.state.metrics_token,
        worker_token=stack.state.worker_token,
    )
