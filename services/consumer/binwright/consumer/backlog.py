"""A consumer's own staged files that have not landed: they are as many as there is room for."""

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass
from itertools import islice

import structlog

from binwright.core.errors import StagingUnavailable
from binwright.core.ports import Staging

log = structlog.get_logger()

SOON_S, LATER_S = 3.0, 30.0
"""From one look for files that are gone to the next; soon: once half of the room is taken."""
LOOK_AT = 500  # files at a time
FIRST_COLLECTION_S, COLLECTION_S = 60.0, 3600.0


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A file that was announced."""

    topic: str
    name: str
    bytes: int


class Backlog:
    """Announced files, oldest first; a writer deletes them when they have landed."""

    def __init__(self, staging: Staging, max_bytes: int, on_room: Callable[[], None]) -> None:
        """Have at most `max_bytes`, about; tell `on_room` when there is room again."""
        self.bytes = 0
        self._staging, self._max_bytes, self._on_room = staging, max_bytes, on_room
        self._files: dict[StagedFile, None] = {}
        self._was_full = False

    @property
    def full(self) -> bool:
        """Tell whether nothing more should be fetched."""
        return self.bytes >= self._max_bytes

    def add(self, file: StagedFile) -> None:
        """Take that a file was announced."""
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
        """Look which are gone, for ever."""
        while True:
            # Half the room is no hurry; yet a report should not tell of files long gone.
            await asyncio.sleep(SOON_S if 2 * self.bytes >= self._max_bytes else LATER_S)
            try:
                await self._look()
            except StagingUnavailable as exc:
                log.warning("staging.unknown", reason=str(exc))

    async def _look(self) -> None:
        oldest = list(islice(self._files, LOOK_AT))
        for topic in sorted({file.topic for file in oldest}):
            asked = [file for file in oldest if file.topic == topic]
            there = set(await self._staging.existing(topic, [file.name for file in asked]))
            for file in asked:
                if file.name not in there:
                    del self._files[file]
                    self.bytes -= file.bytes
        if self._was_full and not self.full:
            log.info("staging.resumed", bytes=self.bytes)
            self._was_full = False
            self._on_room()


async def collect(
    staging: Staging, topics: Callable[[], Collection[str]], older_than_s: float
) -> None:
    """Delete the topics' files of this age, every hour: nobody is left who would."""
    await asyncio.sleep(FIRST_COLLECTION_S)
    while True:
        for topic in sorted(topics()):
            try:
                gone = await staging.collect(topic, older_than_s)
            except StagingUnavailable as exc:
                log.warning("staging.uncollected", topic=topic, reason=str(exc))
                continue
            if gone:
                log.warning("staging.collected", topic=topic, files=gone)
        await asyncio.sleep(COLLECTION_S)
