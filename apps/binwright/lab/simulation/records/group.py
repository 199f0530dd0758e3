"""What all protocols of rebalancing share: partitions, consumers, their batches, their pods."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import floor
from typing import Literal

from binwright.lab.simulation.assignors import Assignor
from binwright.lab.simulation.clock import Clock
from binwright.lab.simulation.outcome import ConsumerCounts
from binwright.lab.simulation.records.consumers import (
    Phase,
    RecordConsumer,
    RecordLatencies,
    RecordPartition,
)
from binwright.protocol.model import Slot

Protocol = Literal["eager", "incremental"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """How consumers, their coordinator and the controller behave; times in seconds.

    The defaults are those of the published experiments where these are known, else calibrated on
    their published prototypes and logs.
    """

    service_s: float = 0.005  # of one record
    poll_s: float = 0.002  # from a fetch to the first record of the batch
    commit_s: float = 0.003  # after the last record of the batch
    max_poll: int = 500  # records of a batch
    burst_s: float = 1.0  # between two arrivals of a batch of records
    sla_s: float = 0.5  # from the arrival of a record to the end of its work

    start_s: float = 4.0  # from the order to the first join, at least
    start_spread_s: float = 0.5  # uniformly more
    stop_s: float = 0.2  # from the order to end until the consumer learns of it
    heartbeat_s: float = 3.0
    callback_s: float = 0.02  # what a consumer does before it gives partitions up
    sync_s: float = 0.03  # from the last join until the assignment is known
    protocol: Protocol = "eager"
    drains: bool = False  # whether a consumer that is to end reads on until its partitions moved
    assignor: Assignor = "range"  # where the policy assigns nothing

    first_replicas: int = 1
    warm_up_s: float = 15.0  # before the first decision
    interval_s: float = 1.0  # from a decision to the next
    overhead_s: float = 0.02  # what the controller's loop adds to the interval, +- 30 %
    scaling_s: float = 0.3  # what a change of replicas adds


Assign = Callable[[int], Sequence[Sequence[int]]]
"""Gives the partitions, by number, of each of n members, the oldest first."""


class RecordGroup(ABC):
    """A consumer group: serves what arrives, and rebalances when members come and go."""

    def __init__(
        self,
        clock: Clock,
        counts: ConsumerCounts,
        settings: GroupSettings,
        partitions: int,
        assign: Assign,
    ) -> None:
        self.clock, self.settings, self.assign = clock, settings, assign
        self._counts = counts
        self.partitions = [RecordPartition(number) for number in range(partitions)]
        self.consumers: list[RecordConsumer] = []
        self.latencies = RecordLatencies(settings.service_s)
        self.rebalances = 0
        self.synced_s = 0.0
        for number in range(settings.first_replicas):
            self.consumers.append(RecordConsumer(number, Phase.READING, first_s=0.0))
            counts.started(Slot(number), clock.now)
            counts.ready(Slot(number), clock.now)
        self.distribute(self.consumers)

    # Pods

    def start(self, delay_s: float) -> None:
        """Order one replica more; it joins after the delay."""
        consumer = RecordConsumer(len(self.consumers))
        self.consumers.append(consumer)
        self._counts.started(Slot(consumer.number), self.clock.now)

        def up() -> None:
            if consumer.phase is Phase.STARTING:
                consumer.phase = Phase.JOINING
                self._counts.ready(Slot(consumer.number), self.clock.now)
                self.joined()

        self.clock.after(delay_s, up)

    def stop(self, replicas: int) -> None:
        """Order the newest replicas to end."""
        running = [c for c in self.consumers if not c.stop_ordered]
        for consumer in running[len(running) - replicas :]:
            consumer.stop_ordered = True
            self.clock.after(self.settings.stop_s, partial(self._stop, consumer))

    def _stop(self, consumer: RecordConsumer) -> None:
        consumer.is_stopping = True
        if consumer.phase is Phase.STARTING:
            self.end(consumer)
        else:
            self.stopping(consumer)

    def end(self, consumer: RecordConsumer) -> None:
        """Let a consumer's process end."""
        consumer.phase = Phase.ENDED
        self._counts.ended(Slot(consumer.number), self.clock.now)

    def leave(self, consumer: RecordConsumer) -> None:
        """End a consumer's process, and rebalance."""
        self.end(consumer)
        self.reassign()

    def members(self) -> list[RecordConsumer]:
        """Return the members that are to stay, the oldest first."""
        return [c for c in self.consumers if c.is_up and not c.is_stopping]

    # Batches

    def arrive(self, records: Sequence[int]) -> None:
        """Add records to the partitions, in their order, and let consumers take them."""
        now = self.clock.now
        for partition, many in zip(self.partitions, records, strict=True):
            partition.append(now, many)
        for consumer in self.consumers:
            self.poll(consumer)

    def poll(self, consumer: RecordConsumer) -> None:
        """Let a consumer take a batch, if it reads and has none."""
        if not consumer.reads:
            return
        now, settings = self.clock.now, self.settings
        begins = now + settings.poll_s
        room = settings.max_poll
        for partition in consumer.partitions:
            taken = partition.take(room)
            for arrived_s, records in taken:
                self.latencies.add(begins, arrived_s, records, consumer.number)
                begins += records * settings.service_s
            if taken:
                records = sum(many for _, many in taken)
                consumer.batch.append((partition, records))
                room -= records
        if consumer.batch:
            if consumer.first_s is None:
                consumer.first_s = now
            consumer.batch_ends_s = begins + settings.commit_s
            consumer.worked_s += consumer.batch_ends_s - now
            self.clock.at(consumer.batch_ends_s, partial(self._commit, consumer))

    def _commit(self, consumer: RecordConsumer) -> None:
        for partition, records in consumer.batch:
            partition.commit(records)
        consumer.batch.clear()
        consumer.last_s = self.clock.now
        self.batch_done(consumer)
        self.poll(consumer)

    # Rebalances

    def distribute(self, members: Sequence[RecordConsumer]) -> None:
        """Give all partitions to members at once."""
        for partition, owner in self.targets(members).items():
            self.hand(partition, owner)

    def targets(self, members: Sequence[RecordConsumer]) -> dict[RecordPartition, RecordConsumer]:
        """Return the new owner of each partition that is to move."""
        wanted = {
            self.partitions[number]: consumer
            for consumer, numbers in zip(members, self.assign(len(members)), strict=True)
            for number in numbers
        }
        return {p: owner for p, owner in wanted.items() if p.owner is not owner}

    def hand(self, partition: RecordPartition, owner: RecordConsumer) -> None:
        """Give a partition to a member."""
        self.release(partition)
        partition.owner = owner
        owner.partitions.append(partition)

    def release(self, partition: RecordPartition) -> None:
        """Take a partition from its owner, if it has one."""
        if partition.owner is not None:
            partition.owner.partitions.remove(partition)
            partition.owner = None

    def next_heartbeat(self) -> float:
        """Return when members learn of a rebalance: their heartbeats go on from the last one."""
        since = self.clock.now - self.synced_s
        return self.synced_s + (floor(since / self.settings.heartbeat_s) + 1) * (
            self.settings.heartbeat_s
        )

    @abstractmethod
    def joined(self) -> None:
        """React to a consumer that wants to become a member."""

    @abstractmethod
    def stopping(self, consumer: RecordConsumer) -> None:
        """React to a consumer that has learned that it is to end."""

    @abstractmethod
    def batch_done(self, consumer: RecordConsumer) -> None:
        """React to the end of a consumer's batch."""

    @abstractmethod
    def reassign(self) -> None:
        """Rebalance because the assignment has changed."""
