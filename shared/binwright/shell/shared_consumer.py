"""One client of Kafka for many control partitions, each with a place of its own.

aiokafka's `assign` with a changed list throws away everybody's buffers and what is being fetched,
so changes are gathered for a moment, and each partition goes on where its place is.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import structlog
from aiokafka import TopicPartition as Theirs
from aiokafka.errors import (
    IllegalStateError,
    KafkaError,
    OffsetOutOfRangeError,
    TopicAuthorizationFailedError,
)

from binwright.core.errors import WorldError
from binwright.core.ports import Record
from binwright.shell.broker import stop_client
from binwright.shell.pauses import until_set

log = structlog.get_logger()

GATHER_S, SPACING_S = 0.02, 0.3
"""Changes of what is assigned are gathered, and followed by some fetches, or nobody would read on
while many readers come."""
MOST_PARTITIONS = 64
"""Of one client. While a fetch waits for more, its broker goes through all of its partitions for
each record that any of them gets: one fetch of a thousand partitions keeps a broker busy."""
POLL_S = 1.0
REST_S = 0.5  # after a fault
MOST_FETCHED = 1_000  # records of one turn
MOST_WAITING = 5_000  # records of a partition that nobody takes; then it is fetched no more


class Place:
    """Where one partition is read, and what has been fetched of it and not been taken."""

    def __init__(self, offset: int) -> None:
        self.next = offset  # to be fetched
        self.assigned = False  # till then what comes is meant for whoever read it before
        self.waiting: deque[Record] = deque()
        self.fault: KafkaError | None = None
        self.news = asyncio.Event()

    def give(self, records: list[Any]) -> None:
        """Take what was fetched."""
        self.waiting.extend(
            Record(r.offset, r.timestamp, r.key, r.value, r.timestamp_type, r.headers)
            for r in records
        )
        self.next = records[-1].offset + 1
        self.news.set()

    def fail(self, fault: KafkaError) -> None:
        """Have the reader told, once it has taken what waits."""
        self.fault = fault
        self.news.set()

    async def take(self, most: int, timeout_s: float) -> list[Record]:
        """Return what comes next, or nothing after `timeout_s`; raise what went wrong."""
        await until_set(self.news, timeout_s)
        found = [self.waiting.popleft() for _ in range(min(most, len(self.waiting)))]
        fault = None
        if not found:
            fault, self.fault = self.fault, None
        if not self.waiting and not self.fault:
            self.news.clear()
        if fault:
            raise fault
        return found


class SharedConsumer:
    """A consumer of aiokafka without a group, for as many partitions as are added."""

    def __init__(self, opened: Callable[[], Awaitable[Any]]) -> None:
        """Get a started client from `opened`, and another one when that broke."""
        self._opened = opened
        self._client: Any = None
        self._places: dict[Theirs, Place] = {}
        self._paused: set[Theirs] = set()
        self._due: asyncio.TimerHandle | None = None
        self._assigned_at = -SPACING_S
        self._fetching: asyncio.Task[None] | None = None

    def takes(self, partition: Theirs) -> bool:
        """Whether there is room here for this partition: it can't have two places."""
        return len(self._places) < MOST_PARTITIONS and partition not in self._places

    def __bool__(self) -> bool:
        """Whether anything is read here."""
        return bool(self._places)

    async def open(self) -> None:
        """Connect; raise what `opened` raises."""
        self._client = await self._opened()
        self._fetching = asyncio.create_task(self._fetch())

    async def close(self) -> None:
        """Let go of connections."""
        if self._due:
            self._due.cancel()
        if self._fetching:
            self._fetching.cancel()
            await asyncio.gather(self._fetching, return_exceptions=True)
        await self._let_go()

    def add(self, partition: Theirs, offset: int) -> Place:
        """Read this partition, too, from `offset` on."""
        place = self._places[partition] = Place(offset)
        self._change()
        return place

    def seek(self, partition: Theirs, offset: int) -> None:
        """Go on elsewhere; what was fetched is dropped."""
        place = self._places[partition]
        place.next = offset
        place.waiting.clear()
        self._resume(partition)
        with contextlib.suppress(IllegalStateError, AttributeError):  # not assigned yet: it will be
            self._client.seek(partition, offset)

    def drop(self, partition: Theirs, place: Place) -> None:
        """Read it no more; a second time changes nothing."""
        if self._places.get(partition) is place:
            del self._places[partition]
            self._paused.discard(partition)
            self._change()

    def wanted(self, partition: Theirs) -> None:
        """Fetch on if this partition was let wait, and its reader has seen to what was wrong."""
        place = self._places[partition]
        if partition in self._paused and not place.fault and len(place.waiting) < MOST_FETCHED:
            self._resume(partition)

    def answered(self, partition: Theirs) -> int | None:
        """Return when a broker last answered for this partition, ms; None: not lately assigned."""
        try:
            when: int | None = self._client.last_poll_timestamp(partition)
        except (AssertionError, IllegalStateError, AttributeError):
            return None
        return when

    # --- inside ----------------------------------------------------------------------------------

    async def _let_go(self) -> None:
        client, self._client = self._client, None
        if client:
            await stop_client(client)

    def _pause(self, partitions: Iterable[Theirs]) -> None:
        for partition in self._places.keys() & set(partitions) - self._paused:
            self._paused.add(partition)
            with contextlib.suppress(IllegalStateError):  # not assigned any more, or not yet
                self._client.pause(partition)

    def _resume(self, partition: Theirs) -> None:
        if partition in self._paused:
            self._paused.discard(partition)
            if self._client:
                self._client.resume(partition)

    def _change(self) -> None:
        if self._due is None:
            loop = asyncio.get_running_loop()
            at = max(loop.time() + GATHER_S, self._assigned_at + SPACING_S)
            self._due = loop.call_at(at, self._assign)

    def _assign(self) -> None:
        self._due, self._assigned_at = None, asyncio.get_running_loop().time()
        if not self._places or self._client is None:
            return
        self._client.assign(list(self._places))
        for partition, place in self._places.items():
            self._client.seek(partition, place.next)
            place.assigned = True
        self._client.pause(*self._paused)

    async def _fetch(self) -> None:
        while True:
            try:
                await self._turn()
            except OffsetOutOfRangeError as exc:
                self._tell(exc, set(exc.args[0]))
            except TopicAuthorizationFailedError as exc:
                self._tell(exc, {p for p in self._places if p.topic in exc.args})
            except KafkaError as exc:
                self._tell(exc, set(self._places))
                await asyncio.sleep(REST_S)
            except WorldError as exc:
                log.warning("fetcher.unreachable", reason=str(exc))
                await asyncio.sleep(REST_S)
            except Exception:  # in aiokafka, or ours: no reader must wait for ever
                log.exception("fetcher.failed", then="another client goes on where it was")
                await self._let_go()
                await asyncio.sleep(REST_S)

    async def _turn(self) -> None:
        if self._client and self._client._fetcher.error_future.done():  # noqa: SLF001 - not told
            log.error("fetcher.died", then="another client goes on where it was")
            await self._let_go()
        if not self._client:
            self._client = await self._opened()
            self._assign()
        found = await self._client.getmany(
            timeout_ms=round(POLL_S * 1000), max_records=MOST_FETCHED
        )
        for partition, records in found.items():
            place = self._places.get(partition)
            if place and place.assigned:
                place.give(records)
                if len(place.waiting) > MOST_WAITING:
                    self._pause([partition])
        await asyncio.sleep(0)  # getmany may return without having waited

    def _tell(self, fault: KafkaError, partitions: set[Theirs]) -> None:
        """Let these wait until their readers have seen the fault; the others go on."""
        self._pause(partitions)
        for partition in partitions:
            if place := self._places.get(partition):
                place.fail(fault)
