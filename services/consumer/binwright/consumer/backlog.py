"""Limits the bytes of a consumer's own staged files that have not landed; collects old files."""

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass
from itertools import islice

import structlog

from binwright.protocol.errors import StagingUnavailable
from binwright.protocol.ports.lake import Staging

log = structlog.get_logger()

SHORT_INTERVAL_S, LONG_INTERVAL_S = 3.0, 30.0
"""Between checks for deleted files; the short one applies above half of the limit."""
CHECKED_FILES = 500  # per check
FIRST_COLLECTION_S, COLLECTION_S = 60.0, 3600.0


@dataclass(frozen=True, slots=True)
class StagedFile:
    """An announced file; `bytes` is its size."""

    topic: str
    name: str
    bytes: int


class Backlog:
    """Announced files, oldest first; the table's writer deletes them once they have landed."""

    def __init__(self, staging: Staging, max_bytes: int) -> None:
        """Limit the backlog to about `max_bytes`."""
        self.bytes = 0
        self._staging, self._max_bytes = staging, max_bytes
        self._files: dict[StagedFile, None] = {}
        self._was_full = False

    @property
    def full(self) -> bool:
        """Return whether the limit is reached: fetching pauses."""
        return self.bytes >= self._max_bytes

    def add(self, file: StagedFile) -> None:
        """Record an announced file."""
        self._files[file] = None
        self.bytes += file.bytes
        if self.full and not self._was_full:
            log.error(
                "staging.full",
                bytes=self.bytes,
                files=len(self._files),
                then="fetching pauses until tables' writers have landed some",
            )
            self._was_full = True

    async def run(self) -> None:
        """Drop files that were deleted, until cancelled."""
        while True:
            # Even a small backlog is checked, so that reports do not count files deleted long ago.
            await asyncio.sleep(
                SHORT_INTERVAL_S if 2 * self.bytes >= self._max_bytes else LONG_INTERVAL_S
            )
            try:
                await self._check()
            except StagingUnavailable as exc:
                log.warning("staging.list_failed", reason=str(exc))

    async def _check(self) -> None:
        oldest = list(islice(self._files, CHECKED_FILES))
        for topic in sorted({file.topic for file in oldest}):
            checked = [file for file in oldest if file.topic == topic]
            existing = set(await self._staging.existing(topic, [file.name for file in checked]))
            for file in checked:
                if file.name not in existing:
                    del self._files[file]
                    self.bytes -= file.bytes
        if self._was_full and not self.full:
            log.info("staging.resumed", bytes=self.bytes)
            self._was_full = False


async def collect(
    staging: Staging, topics: Callable[[], Collection[str]], older_than_s: float
) -> None:
    """Delete files older than `older_than_s` every hour: their writer failed to delete them."""
    await asyncio.sleep(FIRST_COLLECTION_S)
    while True:
        for topic in sorted(topics()):
            try:
                deleted = await staging.collect(topic, older_than_s)
            except StagingUnavailable as exc:
                log.warning("staging.collect_failed", topic=topic, reason=str(exc))
                continue
            if deleted:
                log.warning("staging.collected", topic=topic, files=deleted)
        await asyncio.sleep(COLLECTION_S)
