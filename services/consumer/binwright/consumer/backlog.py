"""Limits the bytes of a consumer's own staged files that have not landed."""

import asyncio
from collections.abc import Collection

import structlog

from binwright.consumer.decide.buffer import over_share
from binwright.protocol.errors import StagingUnavailable
from binwright.protocol.ports.lake import Staging
from binwright.runtime.clock import loop_s

log = structlog.get_logger()

SHORT_INTERVAL_S, LONG_INTERVAL_S = 3.0, 30.0
"""Between checks for deleted files; the short one applies above a quarter of the limit."""
REST = 10.0
"""A topic whose check took a second rests for so many: a refused table may have many files."""


class Backlog:
    """Announced files of each topic; the table's writer deletes them once they have landed.

    Attributes:
        bytes: The size of those that have not landed, as far as it is known.
    """

    def __init__(self, staging: Staging, max_bytes: int) -> None:
        """Limit the backlog to about `max_bytes`."""
        self.bytes = 0
        self._staging, self._max_bytes = staging, max_bytes
        self._files: dict[str, dict[str, int]] = {}  # topic -> name -> bytes
        self._sizes: dict[str, int] = {}  # topic -> bytes
        self._rests_until: dict[str, float] = {}
        self._stopped: frozenset[str] = frozenset()

    @property
    def full(self) -> bool:
        """Return whether the limit is reached: fetching pauses."""
        return self.bytes >= self._max_bytes

    def over_share(self, topics: Collection[str]) -> frozenset[str]:
        """Return those of the topics that are read whose files take too much; log changes."""
        sizes = dict.fromkeys(topics, 0) | self._sizes
        over = topics if self.full else over_share(self._max_bytes, sizes)
        stopped = frozenset(over).intersection(topics)
        for topic in sorted(stopped - self._stopped):
            log.error(
                "staging.full",
                topic=topic,
                bytes=self._sizes.get(topic, 0),
                files=len(self._files.get(topic, ())),
                then="the topic is fetched again when its table's writer has landed some",
            )
        for topic in sorted(self._stopped.intersection(topics) - stopped):
            log.info("staging.resumed", topic=topic, bytes=self._sizes.get(topic, 0))
        self._stopped = stopped
        return stopped

    def add(self, topic: str, name: str, size: int) -> None:
        """Record an announced file of `size` bytes."""
        self._files.setdefault(topic, {})[name] = size
        self._count(topic, size)

    def _count(self, topic: str, size: int) -> None:
        self._sizes[topic] = self._sizes.get(topic, 0) + size
        self.bytes += size

    async def run(self) -> None:
        """Drop files that were deleted, until cancelled."""
        while True:
            # Even a small backlog is checked, so that reports do not count files deleted long ago.
            often = self._stopped or 4 * self.bytes >= self._max_bytes
            await asyncio.sleep(SHORT_INTERVAL_S if often else LONG_INTERVAL_S)
            for topic in sorted(self._files):
                if self._rests_until.get(topic, 0.0) <= loop_s():
                    await self._check(topic)

    async def _check(self, topic: str) -> None:
        """Look at all files of a topic: those that land may lie behind others that never do."""
        began, files = loop_s(), self._files[topic]
        names = list(files)
        try:
            existing = frozenset(await self._staging.existing(topic, names))
        except StagingUnavailable as exc:
            log.warning("staging.list_failed", topic=topic, reason=str(exc))
            return
        self._rests_until[topic] = loop_s() + REST * (loop_s() - began)
        for name in names:
            if name not in existing:
                self._count(topic, -files.pop(name))
        if not files:
            del self._files[topic], self._sizes[topic], self._rests_until[topic]
