"""Incremental rebalances: only partitions that change their owner pause.

Kafka's cooperative protocol needs two rounds for this, its newer one (KIP-848) one; here it is one
round. With `drains` a member that is to end reads on until its partitions have moved, as
binwright's own consumers do.
"""

from functools import partial

from binwright.lab.slo.simulator.consumer import Consumer, Phase
from binwright.lab.slo.simulator.group import Assign, Group
from binwright.lab.slo.simulator.partition import Partition
from binwright.lab.slo.simulator.settings import GroupSettings
from binwright.lab.slo.simulator.timeline import Timeline


class IncrementalGroup(Group):
    """A rebalance begins with the members' next heartbeat and ends with the last hand-over."""

    def __init__(
        self, timeline: Timeline, settings: GroupSettings, partitions: int, assign: Assign
    ) -> None:
        super().__init__(timeline, settings, partitions, assign)
        self._is_rebalancing = False
        self._again = False
        self._moving = 0

    def joined(self) -> None:
        """Rebalance."""
        self.reassign()

    def stopping(self, consumer: Consumer) -> None:
        """Read on until others have the partitions, or leave, at once or after the batch."""
        if self.settings.drains and consumer.phase is Phase.READING:
            consumer.phase = Phase.LEAVING
            self.reassign()
        elif not consumer.batch:
            self._leave(consumer)

    def batch_done(self, consumer: Consumer) -> None:
        """Leave if that was due."""
        if consumer.phase is Phase.LEAVING:
            self._leave_if_drained(consumer)
        elif consumer.is_stopping:
            self._leave(consumer)

    def reassign(self) -> None:
        """Rebalance, or once more after the rebalance under way."""
        if self._is_rebalancing:
            self._again = True
            return
        self._is_rebalancing = True
        self.rebalances += 1
        has_readers = any(c.phase is Phase.READING for c in self.consumers)
        begins_s = self.next_heartbeat() if has_readers else self.timeline.now
        self.timeline.at(begins_s, self._begin)

    def _leave(self, consumer: Consumer) -> None:
        self.end(consumer)
        self.reassign()

    def _leave_if_drained(self, consumer: Consumer) -> None:
        if not (consumer.partitions or consumer.batch or self._is_rebalancing):
            self.end(consumer)

    def _begin(self) -> None:
        self.synced_s = self.timeline.now
        members = self.members()
        for consumer in members:
            consumer.phase = Phase.READING
        moves = self.targets(members) if members else {}
        self._moving = len(moves)
        for partition, owner in moves.items():
            ready_s = max(self.timeline.now, self._free_s(partition))
            self.release(partition)
            pause_s = self.settings.sync_s + self.settings.callback_s
            self.timeline.at(ready_s + pause_s, partial(self._handed, partition, owner))
        if not moves:
            self._finish()

    def _free_s(self, partition: Partition) -> float:
        """Return when the owner has finished the batch in work."""
        owner = partition.owner
        return owner.batch_ends_s if owner is not None and owner.batch else 0.0

    def _handed(self, partition: Partition, owner: Consumer) -> None:
        self.hand(partition, owner)
        self.poll(owner)
        self._moving -= 1
        if not self._moving:
            self._finish()

    def _finish(self) -> None:
        self._is_rebalancing = False
        for consumer in self.consumers:
            if consumer.phase is Phase.LEAVING:
                self._leave_if_drained(consumer)
        if self._again:
            self._again = False
            self.reassign()
