"""A leadership refuses a metadata topic that would lose records."""

import asyncio

import pytest
from structlog.testing import capture_logs

from binwright.controller.decide.group import ControllerConfig
from binwright.controller.fleets.fixed import FixedFleet
from binwright.controller.group_context import GroupContext
from binwright.controller.leadership import Leadership, check_metadata_topic
from binwright.kafka.control_records import LANDING_PARTITIONS, METADATA_CONFIG
from binwright.kafka.metrics_topic import Measurements
from binwright.packing.catalogue import algorithm
from binwright.protocol.errors import UserError
from binwright.protocol.model import BytesPerSecond, PerSlot
from binwright.testing.control_topics import FakeControlTopics

pytestmark = pytest.mark.looptime

TOPIC = "g.metadata"


def bus(**config: str) -> FakeControlTopics:
    found = FakeControlTopics({TOPIC: 1})
    found.configs[TOPIC] = {name.replace("_", "."): value for name, value in config.items()}
    return found


@pytest.mark.parametrize("policy", ["delete", "compact,delete"])
async def test_a_topic_that_deletes_by_age_is_refused(policy: str) -> None:
    """Kafka's default: the Hello of a long-lived consumer would be deleted after a week."""
    with pytest.raises(UserError, match=f"topic g.metadata has cleanup.policy={policy}.*compact"):
        await check_metadata_topic(bus(cleanup_policy=policy), TOPIC)


@pytest.mark.parametrize("config", [{"cleanup_policy": "compact"}, {}])
async def test_a_topic_that_compacts_or_has_no_known_policy_is_accepted(
    config: dict[str, str],
) -> None:
    with capture_logs() as logs:
        await check_metadata_topic(bus(**config), TOPIC)
    assert logs == []


async def test_unclean_leader_election_is_warned_about() -> None:
    with capture_logs() as logs:
        await check_metadata_topic(bus(unclean_leader_election_enable="true"), TOPIC)
    assert [(log["event"], log["log_level"]) for log in logs] == [("topic.unsafe", "warning")]


@pytest.mark.parametrize(("replicas", "brokers", "warns"), [(1, 3, 1), (2, 9, 1), (1, 1, 0)])
async def test_fewer_replicas_than_possible_are_warned_about(
    replicas: int, brokers: int, warns: int
) -> None:
    kafka = bus()
    kafka.replicas, kafka.brokers = replicas, brokers
    with capture_logs() as logs:
        await check_metadata_topic(kafka, TOPIC)
    assert len(logs) == warns


async def test_a_leadership_with_a_topic_that_deletes_by_age_ends_at_once() -> None:
    kafka = FakeControlTopics({TOPIC: 1, "metrics": 1})
    kafka.configs[TOPIC] = {"cleanup.policy": "delete"}
    config = ControllerConfig(limits=PerSlot(BytesPerSecond(2.0)), capacity=BytesPerSecond(1.0))
    context = GroupContext(
        metadata_topic=TOPIC,
        landing_topic="g.landing",
        needs_topic="metrics.needs",
        config=config,
        packing=algorithm("sticky"),
    )
    measurements = Measurements(kafka, "metrics")
    with pytest.raises(UserError):
        await Leadership(kafka, FixedFleet(4), context, measurements).lead()
    assert kafka.records(TOPIC) == ()
    kafka.configs[TOPIC] = METADATA_CONFIG
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await Leadership(kafka, FixedFleet(4), context, measurements).lead()
    assert await kafka.partitions("g.landing") == LANDING_PARTITIONS
