"""Tests. They use these variables of the shell, and no others: a key of the shell would be asked."""

import os
import sys

from local.shell_environment import WAY, keep_only

# The proxies, for tests that install packages.
INSTALLERS = {name: value for name, value in os.environ.items() if name in WAY}

# Processes that tests start get variables of their own.
if "pytest" in sys.modules:
    keep_only(
        {"CI", "RAG_TEST_SERVER", "RAG_HOSTILE_SECONDS", "SSL_CERT_FILE", "SSL_CERT_DIR"},
        ("PYTEST_", "PYTHON", "COVERAGE_", "PIP_", "UV_", "npm_config_", "NODE_EXTRA_"),
    )
