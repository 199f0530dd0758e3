"""Orders what a consumer publishes to the controllers: replies first, then gaps, then reports."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping

import structlog

from binwright.consumer.decide.machine import Exit, Reply
from binwright.consumer.mailbox import Mailbox
from binwright.kafka.control_records import CONTROLLER_PARTITION
from binwright.kafka.publishing import Publisher
from binwright.protocol.messages import Gap, Goodbye, Report
from binwright.protocol.model import TopicPartition

log = structlog.get_logger()


class Outbox:
    """Publishes replies in the order of their events, and behind them at most one report.

    A report describes the current state, so it is never sent before a reply that is due. Reports
    do not pile up while Kafka is unavailable. Gaps are merged: the last one of a partition counts.
    """

    def __init__(self, mailbox: Mailbox, state: Callable[[], Report]) -> None:
        """Publish through `mailbox`; `state` builds a report just before it is sent."""
        self._mailbox, self._state = mailbox, state
        self._publisher = Publisher(mailbox.bus, mailbox.topic, CONTROLLER_PARTITION)
        self._replies: deque[Reply | Exit] = deque()
        self._report_due = False
        self._gaps: dict[TopicPartition, int] = {}
        self._wake = asyncio.Event()

    def reply(self, action: Reply | Exit) -> None:
        """Queue a reply, published until confirmed; a queued exit ends `run`."""
        self._replies.append(action)
        self._wake.set()

    def report(self) -> None:
        """Send a report behind the queued replies."""
        self._report_due = True
        self._wake.set()

    def gap(self, committed: Mapping[TopicPartition, int]) -> None:
        """Ask for partitions to be read again from these offsets."""
        self._gaps.update(committed)
        self._wake.set()

    async def run(self) -> str:
        """Publish until a queued exit is reached; return its reason."""
        while True:
            if self._replies:
                match self._replies.popleft():
                    case Exit(reason=reason):
                        return reason
                    case Reply(message=message):
                        await self._publisher.publish(message)
                        if isinstance(message, Goodbye):
                            log.info("goodbye.sent", partitions=len(message.next))
            elif self._gaps:
                await self._publish_gaps()
            elif self._report_due:
                await self._publish_report()
            else:
                self._wake.clear()
                await self._wake.wait()

    async def _publish_report(self) -> None:
        self._report_due = False
        if not await self._publisher.attempt(self._state()):
            self._report_due = True  # of the state then: this one is out of date

    async def _publish_gaps(self) -> None:
        """Publish once: if that fails, the tables' writers ask again."""
        committed, self._gaps = self._gaps, {}
        gap = Gap(slot=self._mailbox.slot, epoch=self._mailbox.epoch, committed=committed)
        if await self._publisher.attempt(gap):
            log.info("gap.sent", partitions={str(p): offset for p, offset in committed.items()})
