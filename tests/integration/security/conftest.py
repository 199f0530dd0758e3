"""One broker with every kind of listener, for all tests of this directory."""

from collections.abc import Iterator

import pytest
from tests.integration.conftest import BackgroundLoop
from tests.integration.security.secured_broker import SecuredBroker, run_secured_broker


@pytest.fixture(scope="session")
def secured(
    background_loop: BackgroundLoop, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecuredBroker]:
    """A broker, its certificates, and how to connect to each of its listeners."""
    with background_loop.entered(run_secured_broker(tmp_path_factory.mktemp("secured"))) as running:
        yield running
