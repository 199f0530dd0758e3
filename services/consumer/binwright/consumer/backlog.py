"""A consumer's own staged files that have not landed: a limit on their bytes, and their age."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass

import structlog

from binwright.consumer.decide.buffer import over_share
from binwright.protocol.errors import StagingUnavailable
from binwright.protocol.ports.lake import Staging
from binwright.runtime.clock import loop_s

log = structlog.get_logger()

SHORT_INTERVAL_S, LONG_INTERVAL_S = 3.0, 30.0
"""Between checks for deleted files; the short one applies above a quarter of the limit."""
LATE_INTERVALS = 8
"""A topic is checked when its oldest file is older than `freshness_s` by so many intervals of
staging: it may have landed, and else the topic is late by that."""
LONGEST_INTERVAL_S = 15.0
"""Between checks of a topic that is late: until then it is staged as if it still were."""
REST = 10.0
"""A topic whose check took a second rests for so many: a refused table may have many files."""


@dataclass(frozen=True, slots=True)
class _File:
    bytes: int
    since: float  # when it was announced, seconds, monotonic


class Backlog:
    """Announced files of each topic; the table's writer deletes them once they have landed.

    Attributes:
        bytes: The size of those that have not landed, as far as it is known.
        late_s: Topic -> how much older than wanted its oldest file was when it was last seen; only
            topics that are late.
    """

    def __init__(
        self, staging: Staging, max_bytes: int, freshness_s: float, interval_s: float
    ) -> None:
        """Limit the backlog to about `max_bytes`.

        Args:
            staging: Where the files are.
            max_bytes: Of all topics.
            freshness_s: The age of rows when they land, as wanted.
            interval_s: Between two files of a topic.
        """
        self.bytes, self.late_s = 0, dict[str, float]()
        self._staging, self._max_bytes = staging, max_bytes
        self._freshness_s = freshness_s
        self._check_age_s = min(freshness_s + LATE_INTERVALS * interval_s, LONG_INTERVAL_S)
        self._files: dict[str, dict[str, _File]] = {}  # topic -> name, in order of announcement
        self._sizes: dict[str, int] = {}  # topic -> bytes
        self._check_at: dict[str, float] = {}  # topic -> when it is checked next
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
        now = loop_s()
        self._files.setdefault(topic, {})[name] = _File(size, now)
        self._check_at.setdefault(topic, now + self._check_age_s)
        self._count(topic, size)

    def _count(self, topic: str, size: int) -> None:
        self._sizes[topic] = self._sizes.get(topic, 0) + size
        self.bytes += size

    async def run(self) -> None:
        """Drop files that were deleted, until cancelled."""
        rests_until: dict[str, float] = {}
        while True:
            await asyncio.sleep(SHORT_INTERVAL_S)
            often = self._stopped or 4 * self.bytes >= self._max_bytes
            for topic in sorted(self._files):
                began = loop_s()
                if began >= rests_until.get(topic, 0.0) and (
                    often or began >= self._check_at[topic]
                ):
                    await self._check(topic)
                    rests_until[topic] = loop_s() + REST * (loop_s() - began)
            rests_until = {t: at for t, at in rests_until.items() if t in self._files}

    async def _check(self, topic: str) -> None:
        """Look at all files of a topic: those that land may lie behind others that never do."""
        files = self._files[topic]
        names = list(files)
        try:
            existing = frozenset(await self._staging.existing(topic, names))
        except StagingUnavailable as exc:
            log.warning("staging.list_failed", topic=topic, reason=str(exc))
            return
        for name in names:
            if name not in existing:
                self._count(topic, -files.pop(name).bytes)
        self.late_s.pop(topic, None)
        if not files:
            del self._files[topic], self._sizes[topic], self._check_at[topic]
            return
        age_s = loop_s() - next(iter(files.values())).since
        if (late_s := age_s - self._freshness_s) > 0:
            self.late_s[topic] = late_s
        again_s = (
            self._check_age_s - age_s
            if age_s < self._check_age_s
            else min(age_s, LONGEST_INTERVAL_S)
        )
        self._check_at[topic] = loop_s() + again_s
