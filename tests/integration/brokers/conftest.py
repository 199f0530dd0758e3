"""Three brokers in three racks, started once for the tests of this directory."""

from collections.abc import AsyncIterator, Iterator

import pytest
from tests.integration.conftest import BackgroundLoop

from binwright.balancer.admin_client import AdminClient
from binwright.local.kafka import EmbeddedBroker, run_brokers
from binwright.runtime.settings.kafka import KafkaSettings

# A follower that asked too early for a new leader's records asks again after this time.
SETTINGS = {"replica.fetch.backoff.ms": "100", "log.segment.bytes": "10485760"}


@pytest.fixture(scope="module")
def racks() -> tuple[str, ...]:
    """The rack of each broker, from broker 1 on."""
    return "a", "b", "c"


@pytest.fixture(scope="module")
def rack_brokers(
    background_loop: BackgroundLoop,
    tmp_path_factory: pytest.TempPathFactory,
    racks: tuple[str, ...],
) -> Iterator[tuple[EmbeddedBroker, ...]]:
    """Brokers in these racks, with the topics of one module only."""
    home = tmp_path_factory.mktemp("racks")
    with background_loop.entered(
        run_brokers(home, count=len(racks), racks=racks, settings=SETTINGS)
    ) as running:
        yield running


@pytest.fixture
def kafka(rack_brokers: tuple[EmbeddedBroker, ...]) -> KafkaSettings:
    servers = ",".join(broker.bootstrap_servers for broker in rack_brokers)
    return KafkaSettings(bootstrap_servers=servers, request_timeout_s=30)


@pytest.fixture
async def admin(kafka: KafkaSettings) -> AsyncIterator[AdminClient]:
    async with AdminClient(kafka) as client:
        yield client
