"""Reads the landing topic once for all tables of a process, and hands out announcements."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

from binwright.consumer.decide.land.chain import contradiction
from binwright.consumer.decide.land.landing import ANNOUNCEMENT_REFUSED
from binwright.consumer.stage.range_messages import LANDING_TOPIC_UNREACHABLE
from binwright.kafka.control_records import READ_S, Decoder, landing_partition
from binwright.protocol.errors import BrokerUnavailable, TopicMissing
from binwright.protocol.landing import Staged, decode_staged
from binwright.protocol.log_events import LogEvent
from binwright.protocol.ports.kafka import ControlTopics, Reader, Record
from binwright.protocol.wire import message_key
from binwright.runtime.clock import loop_s, wall_ms
from binwright.runtime.logs import log

LANDING_FAILED = LogEvent.error(
    "landing.failed", "Reading the landing topic failed unexpectedly; it is opened again."
)
RETRY_S = 1.0
TURN_RECORDS = 5_000
"""A table far behind the others is read for so long before they have their turn."""
TURN_S = 1.0
"""So does one that always finds something new, while others wait at another place."""
AHEAD_S = 1.0
"""A table that is ahead of another waits for records only so long: longer than a broker takes to
answer a fetch that was moved."""

CLOCKS_S = 5.0
"""By so much clocks may differ: a shorter wait in the topic does not count as age of rows."""

Announced = Sequence[tuple[int, Staged]]
"""Announcements to one table: offset in the landing topic and message, in offset order."""


@dataclass(eq=False, slots=True)
class Subscription:
    """One table's part of the landing topic."""

    table: str
    takes: Callable[[str], bool]
    """Whether the table takes a topic's records."""
    next: int
    """Offset of the first record that the table has not got."""
    apply: Callable[[Announced, int], Awaitable[None]]
    """Called with announcements, and the offset before which there are no others."""
    has_room: Callable[[], bool]
    """Whether the table takes more; `LandingTopic.resume` says that this may have changed."""
    lost: Callable[[str], None]
    """Called with the reason when the landing topic was deleted, truncated or recreated; the
    subscription has ended."""
    turn: int = 0  # of its last records
    decoder: Decoder[Staged] = field(default_factory=lambda: Decoder(decode_staged))

    async def take(self, records: Sequence[Record], position: int, now_ms: int) -> None:
        """Hand out what is this table's of consecutive records, which end before `position`."""
        key = self.table.encode()
        # Announcements of other tables, and those read before, are not decoded.
        own = [r for r in records if r.offset >= self.next and message_key(r.key) == key]
        announced: list[tuple[int, Staged]] = []
        for record, message in self.decoder.decode(own):
            if reason := contradiction(message, self.takes):
                fields = {"table": self.table, "offset": record.offset, "file": message.file}
                log(ANNOUNCEMENT_REFUSED, **fields, reason=reason)
            else:
                announced.append((record.offset, _older(message, now_ms - record.timestamp_ms)))
        self.next = position
        # The parts of an announcement are needed again until all of them are read.
        await self.apply(announced, 0 if self.decoder.has_parts else position)


def _older(staged: Staged, waited_ms: int) -> Staged:
    """Return an announcement with the age that its rows have once it is read."""
    waited_s = waited_ms / 1000
    return replace(staged, age_s=staged.age_s + waited_s) if waited_s > CLOCKS_S else staged


class LandingTopic:
    """The landing topic of a group, with one reader for each of its partitions.

    Tables that are behind, or take no more for now, have a position of their own: the reader goes
    back for them in turns.
    """

    def __init__(self, bus: ControlTopics, topic: str, now_ms: Callable[[], int] = wall_ms) -> None:
        """Use the topic; `subscribe` begins to read a partition. `now_ms` is the wall clock."""
        self._bus, self._topic, self._now_ms = bus, topic, now_ms
        self._partitions: dict[int, _PartitionReader] = {}

    def subscribe(self, subscription: Subscription) -> None:
        """Begin to read for a table; a subscription that it has is replaced."""
        partition = landing_partition(subscription.table)
        if partition not in self._partitions:
            self._partitions[partition] = _PartitionReader(
                self._bus, self._topic, partition, self._now_ms
            )
        self._partitions[partition].add(subscription)

    async def unsubscribe(self, table: str) -> None:
        """End reading for a table."""
        partition = landing_partition(table)
        reader = self._partitions.get(partition)
        if reader is not None and not await reader.remove(table):
            self._partitions.pop(partition, None)

    def resume(self, table: str) -> None:
        """Ask again whether the table has room."""
        if (reader := self._partitions.get(landing_partition(table))) is not None:
            reader.changed.set()


class _PartitionReader:
    """Reads one partition while a table subscribes to it."""

    def __init__(
        self, bus: ControlTopics, topic: str, partition: int, now_ms: Callable[[], int]
    ) -> None:
        self.changed = asyncio.Event()  # subscriptions, or the room of one
        self._bus, self._topic, self._partition = bus, topic, partition
        self._now_ms = now_ms
        self._subscriptions: dict[str, Subscription] = {}
        self._reader: Reader | None = None
        self._turn = 0
        self._task: asyncio.Task[None] | None = None

    def add(self, subscription: Subscription) -> None:
        self._subscriptions[subscription.table] = subscription
        self.changed.set()
        self._begin()

    async def remove(self, table: str) -> bool:
        """Remove a table; return whether others are left. Without any, the reading has ended."""
        self._subscriptions.pop(table, None)
        if not self._subscriptions and self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
            self._begin()
        return bool(self._subscriptions)

    def _begin(self) -> None:
        """Read, if a table subscribes and nothing reads yet."""
        if self._subscriptions and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        try:
            while self._subscriptions:
                try:
                    await self._serve_next()
                except TopicMissing as exc:
                    await self._lose(str(exc))
                except Exception as exc:  # noqa: BLE001 - a bug: the tables are claimed again
                    log(LANDING_FAILED, partition=self._partition, exc_info=True)
                    await self._lose(repr(exc))
        finally:
            await self._close()

    async def _serve_next(self) -> None:
        """Read for the table whose turn it is, and for all that are at its position.

        One that is behind waits for its records, which are there, since others have passed them:
        tables that only looked whether something had been fetched would seek each other's fetches
        away without end.
        """
        self.changed.clear()
        ready = [s for s in self._subscriptions.values() if s.has_room()]
        if not ready:
            await self.changed.wait()
            return
        first = min(ready, key=lambda s: (s.turn, s.next, s.table))
        alone = all(s.next == first.next for s in ready)
        timeout_s = READ_S if first.next == min(s.next for s in ready) else AHEAD_S
        self._turn += 1
        first.turn = self._turn
        end, until = first.next + TURN_RECORDS, loop_s() + TURN_S
        while first.has_room() and first.next < end and (alone or loop_s() < until):
            if not await self._read_on(first, timeout_s, until_changed=alone):
                return  # nothing more is there
            if alone and self.changed.is_set():
                return

    async def _read_on(self, first: Subscription, timeout_s: float, *, until_changed: bool) -> bool:
        """Read once from the position of `first`; return whether there was something."""
        try:
            reader = await self._at(first.next)
            if until_changed:
                records = await self._read_until_changed(reader, timeout_s)
            else:
                records = await reader.read(timeout_s)
        except BrokerUnavailable as exc:
            log(LANDING_TOPIC_UNREACHABLE, partition=self._partition, reason=str(exc))
            await asyncio.sleep(RETRY_S)
            return False
        start, position = first.next, reader.position
        if self._subscriptions.get(first.table) is not first:
            return False  # removed meanwhile
        for each in list(self._subscriptions.values()):
            if start <= each.next < position and each.has_room():
                each.turn = self._turn
                await each.take(records, position, self._now_ms())
        return bool(records)

    async def _read_until_changed(self, reader: Reader, timeout_s: float) -> Sequence[Record]:
        """Read; return nothing as soon as subscriptions change: a new one does not wait."""
        reading = asyncio.create_task(reader.read(timeout_s))
        changed = asyncio.create_task(self.changed.wait())
        try:
            await asyncio.wait({reading, changed}, return_when=asyncio.FIRST_COMPLETED)
            return reading.result() if reading.done() else ()
        finally:
            for task in (reading, changed):
                task.cancel()
            await asyncio.wait({reading, changed})

    async def _at(self, offset: int) -> Reader:
        """Return the reader at this offset, or at the oldest record if that is later."""
        if self._reader is None:
            self._reader = await self._bus.reader(self._topic, self._partition, offset)
        elif self._reader.position != offset:
            self._reader.seek(offset)
        return self._reader

    async def _close(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            await reader.close()

    async def _lose(self, reason: str) -> None:
        subscriptions, self._subscriptions = self._subscriptions, {}
        for each in subscriptions.values():
            each.lost(reason)
        await self._close()  # tables that subscribe meanwhile are read for
