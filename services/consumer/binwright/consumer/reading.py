"""Fetching into the buffer: within its room, and no further than the tables' writers can follow."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import structlog

from binwright.consumer.backlog import Backlog
from binwright.consumer.locator import Locator
from binwright.consumer.meters import Meter
from binwright.core.consumer.batch import over_share
from binwright.core.consumer.buffer import Buffer
from binwright.core.errors import BrokerUnavailable, TopicMissing
from binwright.core.model import TopicPartition
from binwright.core.ports import Intake
from binwright.shell.pauses import until_set

log = structlog.get_logger()

FETCH_BYTES = 8 << 20
FETCH_WAIT_S = 0.5
RETRY_S = 1.0


@dataclass(frozen=True, slots=True)
class _Begun:
    """Where fetching of a partition began."""

    offset: int


class Reading:
    """The partitions that are read: fetched into the buffer from where their ranges begin.

    Attributes:
        lost_offsets: How many retention took before they were read.
        waiting: Seconds in which there was no room to fetch into.
    """

    def __init__(  # noqa: PLR0913 - its neighbours
        self,
        *,
        intake: Intake,
        buffer: Buffer,
        locator: Locator,
        backlog: Backlog,
        in_flight: Mapping[str, int],
        on_rows: Callable[[], None],
        beat: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Fill `buffer`; `in_flight` are the bytes of each topic that are being staged."""
        self.lost_offsets, self.waiting = 0, Meter()
        self._intake, self._buffer, self._locator = intake, buffer, locator
        self._backlog, self._in_flight = backlog, in_flight
        self._on_rows, self._beat = on_rows, beat
        self._begun: dict[TopicPartition, _Begun] = {}
        self._held_back: frozenset[str] = frozenset()
        self._wake = asyncio.Event()
        self._failing = False

    def begin(self, partition: TopicPartition, offset: int, *, cut: bool = False) -> None:
        """Read it from here on."""
        self._begun[partition] = _Begun(offset)
        self._buffer.begin(partition, offset, cut=cut)
        self._locator.start(partition, offset)
        self.wake()

    def stop(self, partition: TopicPartition) -> None:
        """Read it no more, at once; what of it is not being staged is dropped."""
        self._intake.stop(partition)
        self._buffer.drop(partition)
        self._begun.pop(partition, None)

    def wake(self) -> None:
        """Look again: there is something to read, or room for it."""
        self._wake.set()

    async def run(self) -> None:
        """Fetch, for ever."""
        now = asyncio.get_running_loop().time
        while True:
            self._beat("fetch")
            self._hold_back()
            room = self._room()
            if room <= 0 or not self._begun:
                began = now()
                await self._woken(FETCH_WAIT_S)
                if self._begun:
                    self.waiting.add(now(), now() - began)
                continue
            await self._fetch(min(room, FETCH_BYTES))

    def _room(self) -> int:
        return 0 if self._backlog.full else self._buffer.room - sum(self._in_flight.values())

    async def _woken(self, timeout_s: float) -> None:
        self._wake.clear()
        await until_set(self._wake, timeout_s)

    async def _fetch(self, most: int) -> None:
        try:
            found = await self._intake.fetch(most, FETCH_WAIT_S)
        except (BrokerUnavailable, TopicMissing) as exc:
            if not self._failing:
                log.warning("fetch.failed", reason=str(exc), then="tried again every second")
            self._failing = True
            await asyncio.sleep(RETRY_S)
            return
        # No await from here to the end: a stop in between would come too late.
        now = asyncio.get_running_loop().time()
        for partition, records in found.items():
            self._buffer.add(partition, records, now)
        self._look_at_jumps()
        if found:
            self._recovered()
            self._on_rows()

    def _recovered(self) -> None:
        if self._failing:
            log.info("fetch.recovered")
        self._failing = False

    def _look_at_jumps(self) -> None:
        for partition, (wanted, got) in self._intake.lost().items():
            if partition not in self._begun:
                continue
            if got >= wanted:
                self.lost_offsets += got - wanted
                log.error(
                    "records.lost",
                    partition=str(partition),
                    wanted=wanted,
                    first=got,
                    reason="retention took them before they were read",
                )
            else:
                seen = wanted > self._begun[partition].offset
                self._locator.explain(partition, wanted, seen=seen)

    # --- room for all ----------------------------------------------------------------------------

    def _hold_back(self) -> None:
        """Fetch nothing of topics that have more than their share of memory, until they have not.

        Else one topic whose files cannot be staged would stop them all.
        """
        sizes = self._buffer.sizes
        topics = {p.topic for p in self._begun}
        held = over_share(
            self._buffer.rules, {t: sizes.get(t, 0) + self._in_flight.get(t, 0) for t in topics}
        )
        if held - self._held_back:
            log.info("fetching.held_back", topics=sorted(held - self._held_back))
        for partition in self._of(held):
            self._intake.stop(partition)
        for partition in self._of(self._held_back - held):
            if (offset := self._buffer.next_offset(partition)) is not None:
                self._locator.start(partition, offset)
        self._held_back = held

    def _of(self, topics: Collection[str]) -> list[TopicPartition]:
        return [p for p in self._begun if p.topic in topics] if topics else []
