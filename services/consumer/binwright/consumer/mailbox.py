"""A consumer's connection to the controllers: its Hello, its commands, and what it publishes."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from binwright.consumer.decide.machine import Exit, Reply
from binwright.kafka.control_records import CONTROLLER_PARTITION
from binwright.kafka.own_topics import check_own
from binwright.kafka.publishing import Publisher, publish_message
from binwright.protocol.errors import TopicMissing
from binwright.protocol.log_events import LogEvent
from binwright.protocol.metadata import Gap, Goodbye, Hello, Report
from binwright.protocol.model import Slot, TopicPartition
from binwright.protocol.ports.kafka import ControlTopics, Reader
from binwright.runtime.logs import log

GOODBYE_SENT = LogEvent.info(
    "goodbye.sent", "The consumer sent `Goodbye` with the offsets at which others continue."
)
GAP_SENT = LogEvent.info("gap.sent", "This writer reported a gap to the controller.")

POLL_S = 0.2


@dataclass(frozen=True, slots=True)
class Mailbox:
    """How one process of a slot is commanded, and where it reports."""

    bus: ControlTopics
    metadata_topic: str
    slot: Slot
    epoch: int
    reader: Reader  # of the slot's commands


async def open_mailbox(  # noqa: PLR0917 - the process, two topics and a limit
    bus: ControlTopics,
    metadata_topic: str,
    commands_topic: str,
    slot: Slot,
    process: str,
    version: str,
    wall_ms: Callable[[], int],
    timeout_s: float = 60.0,
) -> Mailbox:
    """Send Hello; its offset is the epoch. Commands are read from just before the Hello on.

    `timeout_s` limits the wait for the slot's partition of the commands topic.

    Raises:
        ForeignTopic: A topic is another's.
        TopicMissing: The slot has no such partition: no controller created one in time.
        BrokerUnavailable: Kafka does not answer; whether Hello was sent is unknown.
    """
    try:
        async with asyncio.timeout(timeout_s):
            while await bus.partitions(commands_topic) <= slot:  # noqa: ASYNC110 - Kafka sends no event
                await asyncio.sleep(POLL_S)
    except TimeoutError as exc:
        raise TopicMissing(
            f"slot {slot} needs partition {slot} of {commands_topic}, which is not there after "
            f"{timeout_s:g} s: is a controller of this group running, of this version?"
        ) from exc
    for topic in (metadata_topic, commands_topic):
        await check_own(bus, topic)
    end = await bus.end(commands_topic, slot)
    hello = Hello(slot=slot, process=process, version=version, sent_ms=wall_ms())
    epoch = await publish_message(bus, metadata_topic, CONTROLLER_PARTITION, hello)
    reader = await bus.reader(commands_topic, slot, end)
    return Mailbox(bus, metadata_topic, slot, epoch, reader)


class Outbox:
    """Publishes replies in the order of their events, and behind them at most one report.

    A report describes the current state, so it is never sent before a reply that is due. Reports
    do not pile up while Kafka is unavailable. Gaps are merged: the last one of a table counts,
    and of a topic's tables the lowest offset.
    """

    def __init__(self, mailbox: Mailbox, state: Callable[[], Report]) -> None:
        """Publish through `mailbox`; `state` builds a report just before it is sent."""
        self._mailbox, self._state = mailbox, state
        self._publisher = Publisher(mailbox.bus, mailbox.metadata_topic, CONTROLLER_PARTITION)
        self._replies: deque[Reply | Exit] = deque()
        self._report_due = False
        self._gaps: dict[str, dict[TopicPartition, int]] = {}  # by table
        self._wake = asyncio.Event()

    def reply(self, action: Reply | Exit) -> None:
        """Queue a reply, published until confirmed; a queued exit ends `run`."""
        self._replies.append(action)
        self._wake.set()

    def report(self) -> None:
        """Send a report behind the queued replies."""
        self._report_due = True
        self._wake.set()

    def gap(self, table: str, committed: Mapping[TopicPartition, int]) -> None:
        """Ask for partitions to be read again for a table from these offsets."""
        self._gaps.setdefault(table, {}).update(committed)
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
                            log(GOODBYE_SENT, partitions=len(message.next))
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
        committed: dict[TopicPartition, int] = {}
        for partition, offset in (each for gaps in self._gaps.values() for each in gaps.items()):
            committed[partition] = min(offset, committed.get(partition, offset))
        self._gaps = {}
        gap = Gap(slot=self._mailbox.slot, epoch=self._mailbox.epoch, committed=committed)
        if await self._publisher.attempt(gap):
            log(GAP_SENT, partitions={str(p): offset for p, offset in committed.items()})
