"""What all protocols of rebalancing share: partitions, consumers, their batches, their pods."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from math import floor

from binwright.lab.slo.simulator.consumer import Consumer, Phase
from binwright.lab.slo.simulator.latencies import Latencies
from binwright.lab.slo.simulator.partition import Partition
from binwright.lab.slo.simulator.settings import GroupSettings
from binwright.lab.slo.simulator.timeline import Timeline

Assign = Callable[[int], Sequence[Sequence[int]]]
"""Gives the partitions, by number, of each of n members, the oldest first."""


class Group(ABC):
    """A consumer group: serves what arrives, and rebalances when members come and go."""

    def __init__(
        self, timeline: Timeline, settings: GroupSettings, partitions: int, assign: Assign
    ) -> None:
        self.timeline, self.settings, self.assign = timeline, settings, assign
        self.partitions = [Partition(number) for number in range(partitions)]
        self.consumers: list[Consumer] = []
        self.latencies = Latencies(settings.service_s)
        self.rebalances = 0
        self.synced_s = 0.0
        for number in range(settings.first_replicas):
            self.consumers.append(Consumer(number, 0.0, Phase.READING, first_s=0.0))
        self.distribute(self.consumers)

    # Pods

    def start(self, delay_s: float) -> None:
        """Order one replica more; it joins after the delay."""
        consumer = Consumer(len(self.consumers), self.timeline.now)
        self.consumers.append(consumer)

        def up() -> None:
            if consumer.phase is Phase.STARTING:
                consumer.phase = Phase.JOINING
                self.joined()

        self.timeline.after(delay_s, up)

    def stop(self, replicas: int) -> None:
        """Order the newest replicas to end."""
        running = [c for c in self.consumers if not c.stop_ordered]
        for consumer in running[len(running) - replicas :]:
            consumer.stop_ordered = True
            self.timeline.after(self.settings.stop_s, partial(self._stop, consumer))

    def _stop(self, consumer: Consumer) -> None:
        consumer.is_stopping = True
        if consumer.phase is Phase.STARTING:
            self.end(consumer)
        else:
            self.stopping(consumer)

    def end(self, consumer: Consumer) -> None:
        """Let a consumer's process end."""
        consumer.phase = Phase.ENDED
        consumer.ended_s = self.timeline.now

    def members(self) -> list[Consumer]:
        """Return the members that are to stay, the oldest first."""
        return [c for c in self.consumers if c.is_up and not c.is_stopping]

    # Batches

    def arrive(self, records: Sequence[int]) -> None:
        """Add records to the partitions, in their order, and let consumers take them."""
        now = self.timeline.now
        for partition, many in zip(self.partitions, records, strict=True):
            partition.append(now, many)
        for consumer in self.consumers:
            self.poll(consumer)

    def poll(self, consumer: Consumer) -> None:
        """Let a consumer take a batch, if it reads and has none."""
        if not consumer.reads:
            return
        now, settings = self.timeline.now, self.settings
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
            self.timeline.at(consumer.batch_ends_s, partial(self._commit, consumer))

    def _commit(self, consumer: Consumer) -> None:
        for partition, records in consumer.batch:
            partition.commit(records)
        consumer.batch.clear()
        consumer.last_s = self.timeline.now
        self.batch_done(consumer)
        self.poll(consumer)

    # Rebalances

    def distribute(self, members: Sequence[Consumer]) -> None:
        """Give all partitions to members at once."""
        for partition, owner in self.targets(members).items():
            self.hand(partition, owner)

    def targets(self, members: Sequence[Consumer]) -> dict[Partition, Consumer]:
        """Return the new owner of each partition that is to move."""
        wanted = {
            self.partitions[number]: consumer
            for consumer, numbers in zip(members, self.assign(len(members)), strict=True)
            for number in numbers
        }
        return {p: owner for p, owner in wanted.items() if p.owner is not owner}

    def hand(self, partition: Partition, owner: Consumer) -> None:
        """Give a partition to a member."""
        self.release(partition)
        partition.owner = owner
        owner.partitions.append(partition)

    def release(self, partition: Partition) -> None:
        """Take a partition from its owner, if it has one."""
        if partition.owner is not None:
            partition.owner.partitions.remove(partition)
            partition.owner = None

    def next_heartbeat(self) -> float:
        """Return when members learn of a rebalance: their heartbeats go on from the last one."""
        since = self.timeline.now - self.synced_s
        return self.synced_s + (floor(since / self.settings.heartbeat_s) + 1) * (
            self.settings.heartbeat_s
        )

    @abstractmethod
    def joined(self) -> None:
        """React to a consumer that wants to become a member."""

    @abstractmethod
    def stopping(self, consumer: Consumer) -> None:
        """React to a consumer that has learned that it is to end."""

    @abstractmethod
    def batch_done(self, consumer: Consumer) -> None:
        """React to the end of a consumer's batch."""

    @abstractmethod
    def reassign(self) -> None:
        """Rebalance because the assignment has changed."""
