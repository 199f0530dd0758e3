"""The hand-over topic is refused where it would lose records."""

import asyncio

import pytest
from structlog.testing import capture_logs

from binwright.controller.fleets.fixed import FixedFleet
from binwright.controller.measurements import Measurements
from binwright.controller.steer import Controller, Realm
from binwright.controller.topic_check import check_metadata_topic
from binwright.core.errors import UserError
from binwright.core.model import BytesPerSecond
from binwright.core.packing.catalogue import algorithm
from binwright.core.rules import Rules
from binwright.shell.letters import LANDING_PARTITIONS, METADATA_CONFIG
from binwright.testing.bus import FakeBus

pytestmark = pytest.mark.looptime

TOPIC = "g.metadata"


def bus(**config: str) -> FakeBus:
    found = FakeBus({TOPIC: 1})
    found.configs[TOPIC] = {name.replace("_", "."): value for name, value in config.items()}
    return found


@pytest.mark.parametrize("policy", ["delete", "compact,delete"])
async def test_a_topic_that_deletes_by_age_is_refused_by_name(policy: str) -> None:
    """Kafka's own default: a long-lived consumer's Hello would be gone after a week."""
    with pytest.raises(UserError, match=f"topic g.metadata has cleanup.policy={policy}.*compact"):
        await check_metadata_topic(bus(cleanup_policy=policy), TOPIC)


@pytest.mark.parametrize("config", [{"cleanup_policy": "compact"}, {}])
async def test_a_topic_that_compacts_or_is_not_told_of_is_taken(config: dict[str, str]) -> None:
    with capture_logs() as logs:
        await check_metadata_topic(bus(**config), TOPIC)
    assert logs == []


async def test_an_unclean_election_is_warned_of() -> None:
    with capture_logs() as logs:
        await check_metadata_topic(bus(unclean_leader_election_enable="true"), TOPIC)
    assert [(log["event"], log["log_level"]) for log in logs] == [("topic.unsafe", "warning")]


@pytest.mark.parametrize(("replicas", "brokers", "warns"), [(1, 3, 1), (2, 9, 1), (1, 1, 0)])
async def test_fewer_replicas_than_there_could_be_are_warned_of(
    replicas: int, brokers: int, warns: int
) -> None:
    world = bus()
    world.replicas, world.brokers = replicas, brokers
    with capture_logs() as logs:
        await check_metadata_topic(world, TOPIC)
    assert len(logs) == warns


async def test_a_leadership_over_such_a_topic_ends_at_once() -> None:
    world = FakeBus({TOPIC: 1, "metrics": 1})
    world.configs[TOPIC] = {"cleanup.policy": "delete"}
    rules = Rules(limit=BytesPerSecond(2.0), capacity=BytesPerSecond(1.0))
    realm = Realm(
        metadata_topic=TOPIC,
        landing_topic="g.landing",
        needs_topic="metrics.needs",
        rules=rules,
        packing=algorithm("sticky"),
    )
    measurements = Measurements(world, "metrics")
    with pytest.raises(UserError):
        await Controller(world, FixedFleet(4), realm, measurements).reign()
    assert world.records(TOPIC) == ()
    world.configs[TOPIC] = METADATA_CONFIG
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await Controller(world, FixedFleet(4), realm, measurements).reign()
    assert await world.partitions("g.landing") == LANDING_PARTITIONS
