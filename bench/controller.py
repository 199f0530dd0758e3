"""`make bench NAME=controller`: CPU seconds per second of a controller's machine, by group size.

One process, no Kafka. Each round takes one report of every consumer, one measurement of every topic
and one tick, as bytes as they stand in Kafka, decoded and folded by the product's own code. Figures
are CPU seconds a round, so per second at the default intervals: the rounds' mean; and the memory.
"""

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psutil
from immutables import Map
from rich.table import Table

from bench import figures
from binwright.cli.terminal import Console
from binwright.controller.decide.events import Tick
from binwright.controller.decide.machine import transition
from binwright.controller.decide.states import Sentinel, State
from binwright.group.config import ControllerSettings
from binwright.group.fold import Measured, RecordRead
from binwright.group.group import Group
from binwright.group.members import Member, Members
from binwright.group.ownership import Owned, Ownership, PartitionOwnership
from binwright.protocol import wire
from binwright.protocol.metadata import Report, TableReport, decode_inbound
from binwright.protocol.metrics import Measurement, PartitionRate, decode_measurement
from binwright.protocol.model import BytesPerSecond, Slot, TopicPartition
from binwright.runtime.settings.group_config import config_of

RATE = 1_000.0
ROUNDS = 5
TERM = 5


@dataclass(frozen=True, slots=True)
class Size:
    """A group."""

    partitions: int
    topics: int
    consumers: int

    def __str__(self) -> str:
        return (
            f"{self.partitions:,} partitions, {self.topics:,} topics, {self.consumers:,} consumers"
        )


SIZES = (
    Size(1_000, 100, 20),
    Size(10_000, 10, 200),
    Size(10_000, 1_000, 200),
    Size(100_000, 100, 1_000),
)


class FakeGroup:
    """A group in steady state, and the records that it makes in a second."""

    def __init__(self, size: Size) -> None:
        self._size = size
        per_topic = size.partitions // size.topics
        self._topics = {f"team-{t:04}.events.v1": range(per_topic) for t in range(size.topics)}
        every = [TopicPartition(t, n) for t, there in self._topics.items() for n in there]
        self._of: dict[Slot, list[TopicPartition]] = {}
        for number, partition in enumerate(every):
            self._of.setdefault(Slot(number * size.consumers // len(every)), []).append(partition)
        self._writes = {
            slot: [t for n, t in enumerate(self._topics) if n % size.consumers == slot]
            for slot in self._of
        }
        self._round = 0

    def state(self) -> State:
        """Return the machine as it looks a while after a start."""
        limit = BytesPerSecond(1.5 * RATE * self._size.partitions / self._size.consumers)
        settings = ControllerSettings(
            limit_bytes_per_s=limit,
            capacity_bytes_per_s=limit,
            max_slots=self._size.consumers,
            catch_up_s=0.0,
        )
        members = {
            slot: Member(
                hello=10 + slot,
                ready=True,
                replied_term=TERM,
                reading=dict.fromkeys(partitions, 0),
                writing={topic: self._table(topic) for topic in self._writes[slot]},
            )
            for slot, partitions in self._of.items()
        }
        owned = {
            p: Owned(slot, 10 + slot) for slot, partitions in self._of.items() for p in partitions
        }
        roles = {
            topic: Owned(slot, 10 + slot) for slot, there in self._writes.items() for topic in there
        }
        group = Group(
            config=config_of(settings),
            controller="bench",
            term=TERM,
            members=Members(Map(members), PartitionOwnership(owned), Ownership(roles)),
        )
        return Sentinel(group, 0.0)

    def _table(self, topic: str) -> TableReport:
        committed = {TopicPartition(topic, n): self._round for n in self._topics[topic]}
        return TableReport(state="landing", committed=committed, age_s=1.0)

    def second(self) -> tuple[list[bytes], list[bytes]]:
        """Return the reports and the measurements of the next second."""
        self._round += 1
        reports = [
            wire.encode(
                Report(
                    slot=slot,
                    epoch=10 + slot,
                    term=TERM,
                    ready=True,
                    reading=dict.fromkeys(partitions, self._round * 100),
                    writing={topic: self._table(topic) for topic in self._writes[slot]},
                )
            )
            for slot, partitions in self._of.items()
        ]
        return reports, [self._measurement(topic) for topic in self._topics]

    def _measurement(self, topic: str) -> bytes:
        rows = tuple(
            PartitionRate(
                partition=number,
                rate=BytesPerSecond(RATE + (number + self._round) % 7),
                window_s=30.0,
                end=self._round * 100,
                start=0,
                bytes_per_record=100.0,
                records_per_s=10.0,
                size=1_000_000,
                leader=1,
            )
            for number in self._topics[topic]
        )
        return wire.encode(
            Measurement(
                topic=topic,
                at_ms=self._round * 1000,
                monitor="bench",
                number=self._round,
                interval_s=1.0,
                count=len(rows),
                partitions=rows,
            )
        )


def measure(size: Size) -> dict[str, Any]:
    """Return what a second of such a group costs."""
    played = FakeGroup(size)
    state, offset = played.state(), 100
    costs = dict.fromkeys(
        ("reports", "of it decoding", "measurements", "ticks", "of measurements decoding"), 0.0
    )
    for number in range(-1, ROUNDS):  # the first is not counted
        now = float(number + 2)
        reports, measurements = played.second()
        began = time.process_time()
        inbound = [decode_inbound(payload) for payload in reports]
        decoded = time.process_time()
        for message in inbound:
            offset += 1
            state, _ = transition(state, RecordRead(now, offset, message))
        applied = time.process_time()
        result = [decode_measurement(payload) for payload in measurements]
        decoded_m = time.process_time()
        for measurement in result:
            state, _ = transition(state, Measured(now, measurement))
        measured = time.process_time()
        state, actions = transition(state, Tick(now))
        ticked = time.process_time()
        if not isinstance(state, Sentinel):
            raise SystemExit(f"the group was to stay as it is, and is {type(state)}: {actions}")
        if number >= 0:
            costs["reports"] += applied - began
            costs["of it decoding"] += decoded - began
            costs["measurements"] += measured - applied
            costs["of measurements decoding"] += decoded_m - applied
            costs["ticks"] += ticked - measured
    row = {name: spent / ROUNDS for name, spent in costs.items()}
    return {
        "group": str(size),
        **row,
        "in all": row["reports"] + row["measurements"] + row["ticks"],
        "MB": psutil.Process().memory_info().rss / 1e6,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Print JSON, and a table on standard error."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", type=int, nargs="*", help="which sizes, from 0")
    figures.add_option(parser)
    chosen = parser.parse_args(arguments)
    sizes = SIZES if chosen.only is None else [SIZES[n] for n in chosen.only]
    rows = [measure(size) for size in sizes]
    table = Table(*rows[0])
    for row in rows:
        table.add_row(*(v if isinstance(v, str) else f"{v:,.3f}" for v in row.values()))
    Console(stderr=True, width=160).print(table)
    figures.progress("controller", rows, chosen.figures)


if __name__ == "__main__":
    main()
