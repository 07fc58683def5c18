"""The SDKs as they are built, once for all tests."""

import pytest

from tests.sdk.typescript_package import Package, compile_users, installed


@pytest.fixture(scope="session")
def typescript(tmp_path_factory: pytest.TempPathFactory) -> Package:
    """The npm package, and a folder of scripts that import it by its name."""
    return installed(tmp_path_factory.mktemp("typescript"))


@pytest.fixture(scope="session")
def typescript_examples(typescript: Package) -> Package:
    """The same with the examples, compiled."""
    compile_users(typescript)
    return typescript
