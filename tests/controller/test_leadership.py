"""A leadership refuses a metadata topic that would lose records, and says when it hangs."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Iterator, Sequence

import pytest
from structlog.testing import capture_logs
from tests.builders import configured

from binwright.controller.fleets.fixed import FixedFleet
from binwright.controller.group_context import GroupContext
from binwright.controller.leadership import Leadership, check_compacted
from binwright.group.plans import Pack
from binwright.kafka.control_records import LANDING_PARTITIONS, METADATA_CONFIG
from binwright.kafka.metrics_topic import Measurements
from binwright.kafka.publishing import publish_message
from binwright.packing.catalogue import Packing, algorithm
from binwright.packing.inputs import Load
from binwright.protocol.errors import UserError
from binwright.protocol.metadata import Planned
from binwright.protocol.model import (
    BytesPerSecond,
    Slot,
    TopicPartition,
)
from binwright.protocol.ports.kafka import Record
from binwright.runtime.health import Health
from binwright.runtime.traces import Span, Trace, untraced
from binwright.testing.control_topics import FakeControlTopics, FakeReader

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
        await check_compacted(bus(cleanup_policy=policy), TOPIC)


@pytest.mark.parametrize("config", [{"cleanup_policy": "compact"}, {}])
async def test_a_topic_that_compacts_or_has_no_known_policy_is_accepted(
    config: dict[str, str],
) -> None:
    with capture_logs() as logs:
        await check_compacted(bus(**config), TOPIC)
    assert logs == []


async def test_unclean_leader_election_is_warned_about() -> None:
    with capture_logs() as logs:
        await check_compacted(bus(unclean_leader_election_enable="true"), TOPIC)
    assert [(log["event"], log["log_level"]) for log in logs] == [("topic.unsafe", "warning")]


@pytest.mark.parametrize(("replicas", "brokers", "warns"), [(1, 3, 1), (2, 9, 1), (1, 1, 0)])
async def test_fewer_replicas_than_possible_are_warned_about(
    replicas: int, brokers: int, warns: int
) -> None:
    kafka = bus()
    kafka.replicas, kafka.brokers = replicas, brokers
    with capture_logs() as logs:
        await check_compacted(kafka, TOPIC)
    assert len(logs) == warns


@pytest.mark.parametrize("topic", [TOPIC, "g.commands", "g.group-orders"])
async def test_a_leadership_with_a_topic_that_deletes_by_age_ends_at_once(topic: str) -> None:
    """As an empty topic of somebody else does, so that it is neither written nor grown."""
    kafka = FakeControlTopics({topic: 1, "metrics": 1})
    kafka.configs[topic] = {"cleanup.policy": "delete"}
    with pytest.raises(UserError, match=topic):
        await leadership(kafka).lead()
    assert kafka.records(topic) == kafka.records(TOPIC) == ()
    kafka.configs[topic] = METADATA_CONFIG
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await leadership(kafka).lead()
    assert await kafka.partitions("g.landing") == LANDING_PARTITIONS


def leadership(
    kafka: FakeControlTopics,
    health: Health | None = None,
    packing: Packing | None = None,
    trace: Trace = untraced,
) -> Leadership:
    config = configured(2, 1)
    context = GroupContext(
        metadata_topic=TOPIC,
        commands_topic="g.commands",
        landing_topic="g.landing",
        orders_topic="g.group-orders",
        needs_topic="metrics.needs",
        config=config,
        packing=packing or algorithm("sticky"),
        trace=trace,
    )
    return Leadership(kafka, FixedFleet(4), context, Measurements(kafka, "metrics"), health=health)


class HangingReader(FakeReader):
    """Reads until it is told to hang: then a read never returns, as after a defect of a client."""

    hangs = False

    async def read(self, timeout_s: float) -> Sequence[Record]:
        if HangingReader.hangs:
            await asyncio.Event().wait()
        return await super().read(timeout_s)


class HangingControlTopics(FakeControlTopics):
    """Gives readers that can be told to hang."""

    async def reader(self, topic: str, partition: int, offset: int) -> FakeReader:
        return HangingReader(self, topic, partition, offset)


@contextlib.asynccontextmanager
async def leading(leader: Leadership) -> AsyncIterator[None]:
    running = asyncio.create_task(leader.lead())
    try:
        yield
    finally:
        running.cancel()
        await asyncio.wait({running})


@pytest.fixture
def health() -> Health:
    return Health(patience_s=120.0)


@pytest.fixture
def kafka() -> Iterator[FakeControlTopics]:
    made = HangingControlTopics({TOPIC: 1, "metrics": 1})
    made.configs[TOPIC] = dict(METADATA_CONFIG)
    yield made
    HangingReader.hangs = False


async def test_a_leader_that_reads_no_records_any_more_fails_the_liveness_probe(
    kafka: FakeControlTopics, health: Health
) -> None:
    """It stays a member of the controllers' group meanwhile, so nobody takes over."""
    async with leading(leadership(kafka, health)):
        await asyncio.sleep(300)
        assert health.stuck() == ""
        HangingReader.hangs = True
        await asyncio.sleep(130)
        assert health.stuck().startswith("orders of g: ")
        assert ", records of g: " in health.stuck()


async def test_plans_of_earlier_leaders_are_not_traced_again(kafka: FakeControlTopics) -> None:
    def planned(consumers: int) -> Planned:
        return Planned(
            term=0, reasons=(), consumers=consumers, moves={}, rscore=0.0, rates={}, targets={}
        )

    traced: list[Span] = []
    await publish_message(kafka, TOPIC, 0, planned(1))
    async with leading(leadership(kafka, trace=traced.append)):
        await asyncio.sleep(1)
        await publish_message(kafka, TOPIC, 0, planned(2))
        await asyncio.sleep(1)
    assert [span.attributes["binwright.consumers"] for span in traced] == [2]


class HangingPacking:
    """Returns once it may."""

    def __init__(self) -> None:
        self.may_return = threading.Event()

    def __call__(self, load: Load) -> dict[TopicPartition, Slot]:
        self.may_return.wait(timeout=30)
        return dict(load.current)


@pytest.mark.looptime(False)  # noqa: FBT003 - it is in a thread
async def test_a_packing_that_hangs_fails_the_liveness_probe(kafka: FakeControlTopics) -> None:
    packing, health = HangingPacking(), Health(patience_s=0.05)
    leader = leadership(kafka, health, packing)
    rates = {TopicPartition("orders", n): BytesPerSecond(1.0) for n in range(2_001)}
    load = Load(rates, BytesPerSecond(10.0), {})
    hanging = asyncio.create_task(leader._pack(Pack(load)))
    async with asyncio.timeout(10):
        while not health.stuck().startswith("packing of g: "):  # noqa: ASYNC110 - time passes
            await asyncio.sleep(0.01)
    packing.may_return.set()
    await hanging
    assert health.stuck() == ""


async def test_an_outage_of_kafka_does_not_fail_the_liveness_probe(
    kafka: FakeControlTopics, health: Health
) -> None:
    """A restart would not help."""
    async with leading(leadership(kafka, health)):
        await asyncio.sleep(10)
        await kafka.go_down()
        await asyncio.sleep(600)
        assert health.stuck() == ""
        await kafka.come_up()


async def test_no_progress_is_expected_of_a_leader_that_has_stepped_down(
    kafka: FakeControlTopics, health: Health
) -> None:
    async with leading(leadership(kafka, health)):
        await asyncio.sleep(10)
    await asyncio.sleep(600)
    assert health.stuck() == ""
