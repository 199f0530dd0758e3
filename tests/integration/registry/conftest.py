"""One registry for all tests of the session; subjects outlive a test: name them by the test."""

from collections.abc import Iterator

import pytest
from tests.integration.conftest import BackgroundLoop
from tests.integration.registry.server import RegistryServer, run_registry


@pytest.fixture(scope="session")
def registry(
    background_loop: BackgroundLoop, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RegistryServer]:
    """Give a registry that runs."""
    with background_loop.entered(run_registry(tmp_path_factory.mktemp("registry"))) as server:
        yield server
