"""Tests. They use these variables of the shell, and no others: a key of the shell would be used."""

import os
import sys

from local.npm_tools import npm_path
from local.shell_environment import PROXIES, keep_only

_PREFIX = "PYTEST_INSTALL_"
# Processes that tests start get variables of their own.
if "pytest" in sys.modules:
    # pytest-xdist starts its processes in the environment that the first one leaves.
    os.environ.update({_PREFIX + name: os.environ[name] for name in PROXIES if name in os.environ})
    keep_only(
        {"CI", "RAG_TEST_SERVER", "RAG_HOSTILE_SECONDS", "SSL_CERT_FILE", "SSL_CERT_DIR"},
        ("PYTEST_", "PYTHON", "COVERAGE_", "PIP_", "UV_", "npm_config_", "NODE_EXTRA_"),
    )
    os.environ["PATH"] = npm_path()
# The proxies, for tests that install packages.
INSTALLATION_PROXIES = {
    name.removeprefix(_PREFIX): value for name, value in os.environ.items() if name.startswith(_PREFIX)
}
