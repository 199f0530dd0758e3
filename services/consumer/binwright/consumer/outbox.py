"""What a consumer publishes to the controllers: acknowledgements in order, then how it is."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping

import structlog

from binwright.consumer.mailbox import Mailbox
from binwright.core.consumer.handover import Exit, Reply
from binwright.core.errors import BrokerUnavailable
from binwright.core.messages import Gap, Goodbye, Report
from binwright.core.model import TopicPartition

log = structlog.get_logger()

RETRY_S = 1.0


class Outbox:
    """Replies in the order they came about, and behind them at most one report.

    A report tells what is now, so it never comes before a reply that is due; while Kafka is away
    none gather. Gaps are merged: only the last one of a partition counts.
    """

    def __init__(self, mailbox: Mailbox, state: Callable[[], Report]) -> None:
        """Publish through `mailbox`; `state` is asked for each report at the last moment."""
        self._mailbox, self._state = mailbox, state
        self._replies: deque[Reply | Exit] = deque()
        self._report_due = False
        self._gaps: dict[TopicPartition, int] = {}
        self._wake = asyncio.Event()

    def reply(self, action: Reply | Exit) -> None:
        """Publish this, however long that takes; an exit ends `run` in its turn."""
        self._replies.append(action)
        self._wake.set()

    def report(self) -> None:
        """Report soon."""
        self._report_due = True
        self._wake.set()

    def gap(self, committed: Mapping[TopicPartition, int]) -> None:
        """Ask for partitions to be read again from these offsets."""
        self._gaps.update(committed)
        self._wake.set()

    async def run(self) -> str:
        """Publish until an exit's turn comes; return its reason."""
        while True:
            if self._replies:
                match self._replies.popleft():
                    case Exit(reason=reason):
                        return reason
                    case Reply(message=message):
                        await self._mailbox.publish(message)
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
        try:
            await self._mailbox.publish_once(self._state())
        except BrokerUnavailable as exc:
            log.warning("report.delayed", reason=str(exc))
            await asyncio.sleep(RETRY_S)
            self._report_due = True  # a new one: this one is out of date

    async def _publish_gaps(self) -> None:
        found, self._gaps = self._gaps, {}
        gap = Gap(slot=self._mailbox.slot, epoch=self._mailbox.epoch, committed=found)
        try:
            await self._mailbox.publish_once(gap)
        except BrokerUnavailable as exc:
            log.warning("gap.unsent", reason=str(exc), then="its table's writer asks again")
            await asyncio.sleep(RETRY_S)
        else:
            log.info("gap.sent", partitions={str(p): offset for p, offset in found.items()})
