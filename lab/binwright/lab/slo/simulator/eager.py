"""Kafka's eager protocol: all members give up all partitions before any gets new ones."""

from binwright.lab.slo.simulator.consumer import Consumer, Phase
from binwright.lab.slo.simulator.group import Assign, Group
from binwright.lab.slo.simulator.settings import GroupSettings
from binwright.lab.slo.simulator.timeline import Timeline


class EagerGroup(Group):
    """A rebalance is prepared until all members have joined again, then synchronised.

    Members learn of it by their next heartbeat, finish their batch and wait for the slowest. What a
    member that has left was reading waits meanwhile; a new member stops nobody before the
    heartbeat.
    """

    def __init__(
        self, timeline: Timeline, settings: GroupSettings, partitions: int, assign: Assign
    ) -> None:
        super().__init__(timeline, settings, partitions, assign)
        self._is_preparing = False
        self._joining: list[Consumer] | None = None  # being synchronised; None: nobody
        self._again = False

    def joined(self) -> None:
        """Prepare a rebalance."""
        self.reassign()

    def stopping(self, consumer: Consumer) -> None:
        """Leave, at once or after the batch."""
        if not consumer.batch:
            self._leave(consumer)

    def batch_done(self, consumer: Consumer) -> None:
        """Leave, or give partitions up, if that was due."""
        if consumer.is_stopping:
            self._leave(consumer)
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
                self.timeline.at(self.next_heartbeat(), self._heartbeat)
        self._sync_when_ready()

    def _leave(self, consumer: Consumer) -> None:
        self.end(consumer)
        self.reassign()

    def _heartbeat(self) -> None:
        for consumer in self.consumers:
            if consumer.phase is Phase.READING:
                if consumer.batch:
                    consumer.revokes_next = True
                else:
                    self._revoke(consumer)

    def _revoke(self, consumer: Consumer) -> None:
        consumer.phase = Phase.REVOKING
        consumer.revokes_next = False

        def revoked() -> None:
            if consumer.phase is Phase.REVOKING:
                consumer.phase = Phase.JOINING
                self._sync_when_ready()

        self.timeline.after(self.settings.callback_s, revoked)

    def _sync_when_ready(self) -> None:
        phases = {consumer.phase for consumer in self.consumers}
        if self._is_preparing and phases.isdisjoint({Phase.READING, Phase.REVOKING}):
            self._is_preparing = False
            self._joining = [c for c in self.consumers if c.phase is Phase.JOINING]
            self.timeline.after(self.settings.sync_s, self._synced)

    def _synced(self) -> None:
        members = [c for c in self._joining or () if c.phase is Phase.JOINING]
        self._joining = None
        self.synced_s = self.timeline.now
        for consumer in members:
            consumer.phase = Phase.READING
        if members:
            self.distribute(members)
        for consumer in members:
            self.poll(consumer)
        if self._again:
            self._again = False
            self.reassign()
