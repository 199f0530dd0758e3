"""One system for all faults."""

from collections.abc import Iterator

import pytest
from tests.deploy.alerts.live_system import LiveSystem, live_system
from tests.integration.conftest import BackgroundLoop, background_loop  # noqa: F401 - a fixture
from tests.programs import ProgramMissing
from tests.prometheus_programs import prometheus


@pytest.fixture(scope="session")
def system(
    background_loop: BackgroundLoop,  # noqa: F811 - the fixture
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[LiveSystem]:
    """Run it; skip, with the reason, without Prometheus."""
    try:
        prometheus()
    except ProgramMissing as exc:
        pytest.skip(str(exc))
    with background_loop.entered(live_system(tmp_path_factory.mktemp("watched"))) as running:
        yield running
