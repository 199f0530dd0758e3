"""`binwright approve`, and a real controller that waits for it, on a real broker."""

import asyncio
import json
from typing import Any

import pytest
from tests.builders import measurement
from tests.integration.command_line import binwright

from binwright.controller.decide.states import Manage
from binwright.controller.fleets.fixed import FixedFleet
from binwright.controller.group_context import group_context
from binwright.controller.leadership import Leadership
from binwright.kafka.control_records import METRICS_CONFIG
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.kafka.metrics_topic import Measurements
from binwright.protocol import wire
from binwright.protocol.metrics import PartitionRate
from binwright.protocol.model import BytesPerSecond
from binwright.runtime.run import background_tasks, must_not_end
from binwright.runtime.settings.group import Settings, load_settings

pytestmark = pytest.mark.integration

GROUP, TOPIC, METRICS = "approving", "approve-orders", "approve-metrics"
DEADLINE_S = 120.0


def settings(broker: str) -> Settings:
    return load_settings(
        group=GROUP,
        topics=[TOPIC],
        kafka={"bootstrap_servers": broker},
        monitor={"topic": METRICS},
        controller={"mode": "approve", "limit_bytes_per_s": 1000.0, "fleet": "fixed"},
    )


async def asked(broker: str, *arguments: str, group: str = GROUP) -> tuple[int, str, str]:
    """Run the command line; return its exit code, and what it wrote."""
    return await binwright(*arguments, "--group", group, "--bootstrap-servers", broker)


async def measure(bus: KafkaControlTopics) -> None:
    """Say of two partitions, again and again, that they are too much for one consumer."""
    passes = 0
    while True:
        passes += 1
        rates = [
            PartitionRate(n, BytesPerSecond(600.0), 30, end=10, start=0, bytes_per_record=None)
            for n in range(2)
        ]
        message = measurement(TOPIC, rates, number=passes)
        await bus.publish(METRICS, 0, wire.key(message), wire.encode(message))
        await asyncio.sleep(0.5)


async def proposal(broker: str) -> dict[str, Any]:
    async with asyncio.timeout(DEADLINE_S):
        while True:
            code, out, err = await asked(broker, "status", "--json")
            assert code == 0, err
            found: dict[str, Any] | None = json.loads(out)[0]["proposal"]
            if found:
                return found


async def test_a_plan_goes_ahead_when_a_person_approves_exactly_it(broker: str) -> None:
    chosen = settings(broker)
    async with KafkaControlTopics(chosen.kafka) as bus:
        await bus.ensure(METRICS, 1, METRICS_CONFIG)
        measurements = Measurements(bus, METRICS)
        controller = Leadership(bus, FixedFleet(4), group_context(chosen), measurements)
        async with background_tasks(
            *map(must_not_end, (controller.lead(), measurements.run(), measure(bus)))
        ):
            async with asyncio.timeout(DEADLINE_S):
                while not await bus.partitions(chosen.metadata_topic):  # noqa: ASYNC110 - only asking tells
                    await asyncio.sleep(0.1)
            plan = await proposal(broker)
            number = plan["plan"]
            assert plan["waits"]
            assert [c["partition"] for c in plan["changes"]] == [f"{TOPIC}-0", f"{TOPIC}-1"]

            code, _, err = await asked(broker, "approve", str(number + 1))
            assert code == 2
            assert f"plan {number + 1} of group {GROUP} does not wait; plan {number} does" in err

            code, out, err = await asked(broker, "approve", str(number))
            assert code == 0, err
            assert f"plan {number} of group {GROUP} goes ahead" in out
            assert isinstance(controller.state, Manage)
            assert controller.state.group.people.approved_plan is not None
            assert controller.state.group.people.approved_plan.plan == number

            code, _, err = await asked(broker, "approve", str(number))
            assert (code, "no plan of group" in err) == (2, True)
