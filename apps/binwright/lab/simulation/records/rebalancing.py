"""Kafka's protocols of rebalancing: eager and incremental."""

from functools import partial

from binwright.lab.simulation.records.consumers import Phase, RecordConsumer, RecordPartition
from binwright.lab.simulation.records.group import RecordGroup


class EagerGroup(RecordGroup):
    """A rebalance is prepared until all members have joined again, then synchronised.

    Members learn of it by their next heartbeat, finish their batch and wait for the slowest. What a
    member that has left was reading waits meanwhile; a new member stops nobody before the
    heartbeat.
    """

    _is_preparing = False
    _joining: list[RecordConsumer] | None = None  # being synchronised; None: nobody
    _again = False  # a rebalance is due after this one

    def joined(self) -> None:
        """Prepare a rebalance."""
        self.reassign()

    def stopping(self, consumer: RecordConsumer) -> None:
        """Leave, at once or after the batch."""
        if not consumer.batch:
            self.leave(consumer)

    def batch_done(self, consumer: RecordConsumer) -> None:
        """Leave, or give partitions up, if that was due."""
        if consumer.is_stopping:
            self.leave(consumer)
        elif consumer.revokes_next:
            self._revoke(consumer)

    def reassign(self) -> None:
        """Prepare a rebalance, or another one after the one that is being synchronised."""
        if self._joining is not None:
            self._again = True
            return
        if not self._is_preparing:
            self._is_preparing = True
            self.rebalances += 1
            if any(c.phase is Phase.READING for c in self.consumers):
                self.clock.at(self.next_heartbeat(), self._heartbeat)
        self._sync_when_ready()

    def _heartbeat(self) -> None:
        for consumer in self.consumers:
            if consumer.phase is Phase.READING:
                if consumer.batch:
                    consumer.revokes_next = True
                else:
                    self._revoke(consumer)

    def _revoke(self, consumer: RecordConsumer) -> None:
        consumer.phase = Phase.REVOKING
        consumer.revokes_next = False

        def revoked() -> None:
            if consumer.phase is Phase.REVOKING:
                consumer.phase = Phase.JOINING
                self._sync_when_ready()

        self.clock.after(self.settings.callback_s, revoked)

    def _sync_when_ready(self) -> None:
        phases = {consumer.phase for consumer in self.consumers}
        if self._is_preparing and phases.isdisjoint({Phase.READING, Phase.REVOKING}):
            self._is_preparing = False
            self._joining = [c for c in self.consumers if c.phase is Phase.JOINING]
            self.clock.after(self.settings.sync_s, self._synced)

    def _synced(self) -> None:
        members = [c for c in self._joining or () if c.phase is Phase.JOINING]
        self._joining = None
        self.synced_s = self.clock.now
        for consumer in members:
            consumer.phase = Phase.READING
        if members:
            self.distribute(members)
        for consumer in members:
            self.poll(consumer)
        if self._again:
            self._again = False
            self.reassign()


class IncrementalGroup(RecordGroup):
    """A rebalance begins with the members' next heartbeat and ends with the last hand-over."""

    _is_rebalancing = False
    _again = False  # a rebalance is due after this one
    _moving = 0

    def joined(self) -> None:
        """Rebalance."""
        self.reassign()

    def stopping(self, consumer: RecordConsumer) -> None:
        """Read on until others have the partitions, or leave, at once or after the batch."""
        if self.settings.drains and consumer.phase is Phase.READING:
            consumer.phase = Phase.LEAVING
            self.reassign()
        elif not consumer.batch:
            self.leave(consumer)

    def batch_done(self, consumer: RecordConsumer) -> None:
        """Leave if that was due."""
        if consumer.phase is Phase.LEAVING:
            self._leave_if_drained(consumer)
        elif consumer.is_stopping:
            self.leave(consumer)

    def reassign(self) -> None:
        """Rebalance, or once more after the rebalance under way."""
        if self._is_rebalancing:
            self._again = True
            return
        self._is_rebalancing = True
        self.rebalances += 1
        has_readers = any(c.phase is Phase.READING for c in self.consumers)
        begins_s = self.next_heartbeat() if has_readers else self.clock.now
        self.clock.at(begins_s, self._begin)

    def _leave_if_drained(self, consumer: RecordConsumer) -> None:
        if not (consumer.partitions or consumer.batch or self._is_rebalancing):
            self.end(consumer)

    def _begin(self) -> None:
        self.synced_s = self.clock.now
        members = self.members()
        for consumer in members:
            consumer.phase = Phase.READING
        moves = self.targets(members) if members else {}
        self._moving = len(moves)
        for partition, owner in moves.items():
            ready_s = max(self.clock.now, self._free_s(partition))
            self.release(partition)
            pause_s = self.settings.sync_s + self.settings.callback_s
            self.clock.at(ready_s + pause_s, partial(self._handed, partition, owner))
        if not moves:
            self._finish()

    def _free_s(self, partition: RecordPartition) -> float:
        """Return when the owner has finished the batch in work."""
        owner = partition.owner
        return owner.batch_ends_s if owner is not None and owner.batch else 0.0

    def _handed(self, partition: RecordPartition, owner: RecordConsumer) -> None:
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
