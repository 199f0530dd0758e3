"""Fetches into the buffer, while it has room and the table writers keep up."""

import asyncio
from collections.abc import Callable, Collection, Mapping

import structlog

from binwright.consumer.decide.batch import over_share
from binwright.consumer.decide.buffer import Buffer
from binwright.consumer.meters import Meter
from binwright.consumer.reading.locator import Locator
from binwright.consumer.staging.backlog import Backlog
from binwright.protocol.errors import BrokerUnavailable, TopicMissing
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import Intake
from binwright.runtime.backoff import until_set

log = structlog.get_logger()

FETCH_BYTES = 8 << 20
FETCH_WAIT_S = 0.5
RETRY_S = 1.0


class Fetcher:
    """Fetches the partitions that are read into the buffer.

    Attributes:
        lost_offsets: How many offsets retention deleted before they were read.
        waiting: Seconds spent waiting for room in the buffer.
    """

    def __init__(  # noqa: PLR0913 - its port and collaborators
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
        """Fill `buffer`; `in_flight` has the bytes of each topic that are being staged."""
        self.lost_offsets, self.waiting = 0, Meter()
        self._intake, self._buffer, self._locator = intake, buffer, locator
        self._backlog, self._in_flight = backlog, in_flight
        self._on_rows, self._beat = on_rows, beat
        self._begun_at: dict[TopicPartition, int] = {}  # the offset where reading began
        self._paused_topics: frozenset[str] = frozenset()
        self._wake = asyncio.Event()
        self._failing = False

    def begin(self, partition: TopicPartition, offset: int, *, cut: bool = False) -> None:
        """Read the partition from `offset` on; `cut`: its log was truncated there."""
        self._begun_at[partition] = offset
        self._buffer.begin(partition, offset, cut=cut)
        self._locator.start(partition, offset)
        self.wake()

    def stop(self, partition: TopicPartition) -> None:
        """Stop reading at once; drop buffered records that are not being staged."""
        self._intake.stop(partition)
        self._buffer.drop(partition)
        self._begun_at.pop(partition, None)

    def wake(self) -> None:
        """Check again: there is something to read, or room for it."""
        self._wake.set()

    async def run(self) -> None:
        """Fetch until cancelled."""
        now = asyncio.get_running_loop().time
        while True:
            self._beat("fetch")
            self._pause_over_share()
            room = self._room()
            if room <= 0 or not self._begun_at:
                began = now()
                await self._wait(FETCH_WAIT_S)
                if self._begun_at:
                    self.waiting.add(now(), now() - began)
                continue
            await self._fetch(min(room, FETCH_BYTES))

    def _room(self) -> int:
        return 0 if self._backlog.full else self._buffer.free_bytes - sum(self._in_flight.values())

    async def _wait(self, timeout_s: float) -> None:
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
        # No await from here on: a stop of a partition must not come in between.
        now = asyncio.get_running_loop().time()
        for partition, records in found.items():
            self._buffer.add(partition, records, now)
        self._apply_jumps()
        if found:
            self._recovered()
            self._on_rows()

    def _recovered(self) -> None:
        if self._failing:
            log.info("fetch.recovered")
        self._failing = False

    def _apply_jumps(self) -> None:
        for partition, (wanted, first) in self._intake.jumps().items():
            if partition not in self._begun_at:
                continue
            if first >= wanted:
                self.lost_offsets += first - wanted
                log.error(
                    "records.lost",
                    partition=str(partition),
                    wanted=wanted,
                    first=first,
                    reason="retention deleted them before they were read",
                )
            else:
                seen = wanted > self._begun_at[partition]
                self._locator.resolve_out_of_range(partition, wanted, seen=seen)

    # --- shares of the buffer --------------------------------------------------------------------

    def _pause_over_share(self) -> None:
        """Pause fetching of topics that use more than their share of the buffer.

        Else one topic whose files cannot be staged would stop all topics.
        """
        sizes = self._buffer.sizes
        topics = {p.topic for p in self._begun_at}
        paused = over_share(
            self._buffer.config, {t: sizes.get(t, 0) + self._in_flight.get(t, 0) for t in topics}
        )
        if paused - self._paused_topics:
            log.info("fetching.paused", topics=sorted(paused - self._paused_topics))
        for partition in self._partitions_of(paused):
            self._intake.stop(partition)
        for partition in self._partitions_of(self._paused_topics - paused):
            if (offset := self._buffer.next_offset(partition)) is not None:
                self._locator.start(partition, offset)
        self._paused_topics = paused

    def _partitions_of(self, topics: Collection[str]) -> list[TopicPartition]:
        return [p for p in self._begun_at if p.topic in topics] if topics else []
