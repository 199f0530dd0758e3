"""binwright as it is: monitor, controller, consumers in processes of their own, a real Spark.

Nothing in the product knows of the bench: `hooks/sitecustomize.py` notes what `fetch` returns.
"""

import contextlib
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

from bench.handover.marks import has_read
from bench.handover.scenario import (
    MEMBERS,
    PARTITIONS,
    RECORD_BYTES,
    RECORDS_PER_S,
    BenchTopic,
    until,
)
from binwright.fleets.process import process_fleet
from binwright.kafka.control_records import METADATA_CONFIG, METRICS_CONFIG
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.local.stack import Stack, services
from binwright.look.follower import watch_group
from binwright.look.group_view import GroupView
from binwright.protocol.model import Slot, TopicPartition
from binwright.runtime.run import background_tasks
from binwright.runtime.settings.group import Settings, load_settings

HOOKS, ROOT = Path(__file__).parent / "hooks", Path(__file__).parents[2]
READY_S, BOUNCE_S, GROW_S = 420.0, 240.0, 240.0
PER_PARTITION = RECORDS_PER_S * (RECORD_BYTES + 30)  # bytes/s, with Kafka's framing
CAPACITY = 4.4 * PER_PARTITION
"""Four partitions fit, five do not; of those that rise two."""


class BinwrightGroup:
    """The group; see `Subject`."""

    def __init__(self, stack: Stack, view: GroupView, topic: str, marks: Path) -> None:
        self.marks, self.view = marks, view
        self._stack = stack
        self._partitions = {TopicPartition(topic, n) for n in range(PARTITIONS)}

    async def begin(self) -> None:
        """Return when four hold everything."""
        await until(lambda: self._held_by(MEMBERS), READY_S, f"{MEMBERS} consumers hold everything")

    async def bounce(self, number: int) -> None:
        """Ask one to end; the fleet starts it again."""
        slot = sorted(self.view.reports)[number]
        old = self._pid(slot)
        os.kill(old, signal.SIGTERM)
        await until(
            lambda: self._reads_again(slot, old), BOUNCE_S, "the new consumer reads", look_s=1.0
        )

    async def grow(self) -> None:
        """Return when the controller has moved something to one more."""
        await until(lambda: self._held_by(MEMBERS + 1), GROW_S, "one more consumer holds some")

    def _held_by(self, consumers: int) -> bool:
        """Whether so many, and no more, read all of it, and the table is written."""
        reports = self.view.reports.values()
        read = [{p for p, at in r.reading.items() if at is not None} for r in reports if r.reading]
        written = any(t.state == "landing" for r in reports for t in r.writing.values())
        return written and len(read) == consumers and self._partitions == set().union(*read)

    def _reads_again(self, slot: Slot, old: int) -> bool:
        return (pid := self._pid(slot)) not in {0, old} and has_read(self.marks, pid)

    def _pid(self, slot: Slot) -> int:
        """Return the slot's youngest process, or 0; a look at all of the machine's."""
        running = process_fleet(self._stack.settings).running().get(slot, ())
        return max(((p.create_time(), p.pid) for p in running), default=(0.0, 0))[1]


def settings(ground: BenchTopic, spark: str, directory: Path) -> Settings:
    """Return a group's settings: four consumers carry the load, and no fewer can."""
    return load_settings(
        group="bench",
        topics=(ground.topic,),
        kafka=ground.kafka.model_dump(exclude_none=True),
        lake={"path": str(directory / "lake"), "spark": spark},
        monitor={"window_s": 8.0},
        consumer={"start": "latest"},
        controller={
            "capacity_bytes_per_s": CAPACITY,
            "limit_bytes_per_s": 1.1 * CAPACITY,
            "process_logs": directory,
            "max_slots": 12,
        },
    )


@contextlib.asynccontextmanager
async def run_binwright_group(
    ground: BenchTopic, spark: str, directory: Path
) -> AsyncIterator[BinwrightGroup]:
    """Run the services, with the hooks in the consumers only."""
    chosen = settings(ground, spark, directory)
    os.environ["HANDOVER_MARKS"] = str(directory)
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HOOKS), str(ROOT)])
    view = GroupView()
    async with KafkaControlTopics(chosen.kafka) as bus:
        await bus.ensure(chosen.metadata_topic, 1, METADATA_CONFIG)
        await bus.ensure(chosen.monitor.topic, 1, METRICS_CONFIG)
        watching = watch_group(bus, chosen.metadata_topic, chosen.monitor.topic, view)
        async with (
            services(chosen, directory) as stack,
            background_tasks(watching, stack.wait_for_failure()),
        ):
            yield BinwrightGroup(stack, view, ground.topic, directory)
