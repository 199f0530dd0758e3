"""The topic of plans for brokers: read from its beginning, followed, and written."""

import asyncio
from collections.abc import Callable

from binwright.balancer.decide.proposals import (
    BrokerPlan,
    BrokerPlanRecord,
    BrokerPlans,
    BrokersEnded,
    CopiesStarted,
    decode_record,
)
from binwright.kafka.control_records import Decoder
from binwright.kafka.own_topics import ensure_own
from binwright.kafka.publishing import publish_message
from binwright.protocol.errors import BrokerUnavailable
from binwright.protocol.log_events import LogEvent
from binwright.protocol.ports.kafka import ControlTopics, Reader
from binwright.runtime.clock import wall_ms
from binwright.runtime.logs import log

BALANCE_FINISHED = LogEvent.info("balance.finished", "A plan for brokers is carried out.")
BALANCE_WITHDRAWN = LogEvent.info(
    "balance.withdrawn",
    "A plan for brokers is out of date or not safe; if one is needed, another takes its place.",
)

PARTITION = 0
CONFIG = {"cleanup.policy": "delete", "retention.ms": str(30 * 24 * 3600 * 1000)}
"""A plan that waits or runs for longer than a month is proposed anew by the next leader."""
READ_S, RETRY_S = 1.0, 5.0


class PlanTopic:
    """What the topic says so far; opened by the first reading."""

    def __init__(self, bus: ControlTopics, topic: str) -> None:
        self._bus, self._topic = bus, topic
        self._reader: Reader | None = None
        self._decoder = Decoder(decode_record)
        self._reading = asyncio.Lock()
        self.proposals = BrokerPlans()

    async def read(self) -> BrokerPlans:
        """Return what the topic says by now; create it if it is not there.

        Raises:
            BrokerUnavailable: Kafka does not answer.
        """
        async with self._reading:
            reader = await self._open()
            end = await self._bus.end(self._topic, PARTITION)
            while reader.position < end:
                await self._take(reader)
            return self.proposals

    async def read_if_there(self) -> BrokerPlans:
        """Return what it says, nothing if it is not there; raise as `read`."""
        if not await self._bus.partitions(self._topic):
            return self.proposals
        return await self.read()

    async def follow(self) -> BrokerPlans:
        """Return what it says when there is something new, or after `READ_S`; raise as `read`."""
        async with self._reading:
            await self._take(await self._open())
            return self.proposals

    async def publish(self, message: BrokerPlanRecord) -> int:
        """Append a record, read it back, return its offset; raise as `ControlTopics.publish`."""
        await self.read()  # creates the topic
        offset = await publish_message(self._bus, self._topic, PARTITION, message)
        await self.read()
        return offset

    async def end(self, plan: BrokerPlan, *, done: bool, reason: str) -> None:
        """Publish that a plan is over."""
        await self.publish(BrokersEnded(plan=plan.number, done=done, reason=reason))
        event = BALANCE_FINISHED if done else BALANCE_WITHDRAWN
        log(event, plan=plan.number, reason=reason)

    async def until_over(self, number: int) -> None:
        """Return when a plan is over, as when a person withdraws it; wait through outages."""
        while self.proposals.numbered(number) is not None:
            try:
                await self.follow()
            except BrokerUnavailable:
                await asyncio.sleep(RETRY_S)

    async def aclose(self) -> None:
        """Release the connection."""
        if self._reader is not None:
            await self._reader.close()

    async def _open(self) -> Reader:
        if self._reader is None:
            await ensure_own(self._bus, self._topic, 1, CONFIG)
            self._reader = await self._bus.reader(self._topic, PARTITION, 0)
        return self._reader

    async def _take(self, reader: Reader) -> None:
        for record, message in self._decoder.decode(await reader.read(READ_S)):
            self.proposals = self.proposals.applied(record.offset, message)


class TopicLedger:
    """A `Ledger` that the next leader reads, too."""

    def __init__(self, topic: PlanTopic, number: int, now_ms: Callable[[], int] = wall_ms) -> None:
        """Keep it for the plan of this number."""
        self._topic, self._number, self._now_ms = topic, number, now_ms

    def spent(self) -> int:
        """See `Ledger`: of all plans."""
        return self._topic.proposals.last_hour_bytes(self._now_ms())

    async def start(self, size: int) -> None:
        """See `Ledger`."""
        message = CopiesStarted(plan=self._number, bytes=size, at_ms=self._now_ms())
        await self._topic.publish(message)
