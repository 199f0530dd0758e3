"""Files that a consumer announced and that have not landed: a limit on their bytes; their age.

What was left in the place when it began to read a topic counts, too: else each restart of a
consumer of a table that takes no rows would stage as much again.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from math import inf

from binwright.consumer.decide.buffer import over_share
from binwright.protocol.errors import StagingUnavailable
from binwright.protocol.log_events import LogEvent
from binwright.runtime.clock import loop_s
from binwright.runtime.logs import log
from binwright.tables.ports import Staging
from binwright.tables.targets import Target

STAGING_FULL = LogEvent.error(
    "staging.full",
    "Files of a topic that have not landed take its share of `staging.max_bytes`; the consumer "
    "stops fetching the topic.",
)
STAGING_RESUMED = LogEvent.info(
    "staging.resumed", "Files of the topic have landed; it is fetched again."
)
STAGING_LIST_FAILED = LogEvent.warning(
    "staging.list_failed", "The consumer cannot see which of its staged files have landed."
)

SHORT_INTERVAL_S, LONG_INTERVAL_S = 3.0, 30.0
"""Between checks for deleted files; the short one applies above a quarter of the limit."""
LATE_INTERVALS = 3
"""A topic is checked when its oldest file is older than `freshness_s` by so many intervals of
staging: it may have landed, and else the topic is late by that."""
LEFT_S = 60.0
"""Age from which a file counts as left: others are on their way."""
LONGEST_INTERVAL_S = 15.0
"""Between checks of a topic that is late: until then it is staged as if it still were."""
REST = 10.0
"""A topic whose check took a second rests for so many: a refused table may have many files."""


@dataclass(frozen=True, slots=True)
class _File:
    bytes: int
    since: float  # when it was announced, seconds, monotonic


class Backlog:
    """Announced files of each table; its writer deletes them once they have landed.

    Attributes:
        bytes: The size of those that have not landed, as far as it is known.
        late_s: Topic -> how much older than wanted the oldest file of the table that is the least
            late was when it was last seen; only topics of which all tables are late.
    """

    def __init__(
        self,
        staging: Staging,
        max_bytes: int,
        freshness_s: float,
        interval_s: float,
        targets: Callable[[str], Collection[Target]] = lambda _: (),
    ) -> None:
        """Limit the backlog to about `max_bytes`.

        Args:
            staging: Where the files are.
            max_bytes: Of all topics.
            freshness_s: The age of rows when they land, as wanted.
            interval_s: Between two files of a topic.
            targets: Returns a topic's tables, in whose directories files may be left.
        """
        self.bytes, self.late_s = 0, dict[str, float]()
        self._staging, self._max_bytes = staging, max_bytes
        self._freshness_s = freshness_s
        self._check_age_s = min(freshness_s + LATE_INTERVALS * interval_s, LONG_INTERVAL_S)
        self._files: dict[Target, dict[str, _File]] = {}  # name -> file, as they were announced
        self._sizes: dict[Target, int] = {}  # bytes
        self._check_at: dict[Target, float] = {}  # when it is checked next
        self._late: dict[str, dict[Target, float]] = {}  # topic -> how late each of its tables is
        self._stopped: frozenset[str] = frozenset()
        self._targets = targets
        self._topics: frozenset[str] = frozenset()  # that are read
        self._left: dict[Target, dict[str, int]] = {}  # name -> bytes, of files that were left
        self._look_at: dict[Target, float] = {}  # when it is looked at what is left

    @property
    def full(self) -> bool:
        """Return whether the limit is reached: fetching pauses."""
        return self.bytes + sum(map(self._left_bytes, self._left)) >= self._max_bytes

    def _left_bytes(self, target: Target) -> int:
        return sum(self._left[target].values())

    def over_share(self, topics: Collection[str]) -> frozenset[str]:
        """Return those of the topics that are read whose files take too much; log changes."""
        self._topics = frozenset(topics)
        sizes = dict.fromkeys(topics, 0) | self._topic_sizes()
        over = topics if self.full else over_share(self._max_bytes, sizes)
        stopped = frozenset(over).intersection(topics)
        for topic in sorted(stopped - self._stopped):
            log(
                STAGING_FULL,
                topic=topic,
                bytes=sizes[topic],
                files=sum(len(files) for t, files in self._files.items() if t.topic == topic),
                then="the topic is fetched again when its tables' writer has landed some",
            )
        for topic in sorted(self._stopped.intersection(topics) - stopped):
            log(STAGING_RESUMED, topic=topic, bytes=sizes[topic])
        self._stopped = stopped
        return stopped

    def _topic_sizes(self) -> Counter[str]:
        sizes = Counter[str]()
        for target, size in self._sizes.items():
            sizes[target.topic] += size
        for target in self._left:
            sizes[target.topic] += self._left_bytes(target)
        return sizes

    def add(self, target: Target, name: str, size: int) -> None:
        """Record an announced file of `size` bytes."""
        now = loop_s()
        self._files.setdefault(target, {})[name] = _File(size, now)
        self._check_at.setdefault(target, now + self._check_age_s)
        self._late.setdefault(target.topic, {}).setdefault(target, 0.0)
        self._count(target, size)

    def _count(self, target: Target, size: int) -> None:
        self._sizes[target] = self._sizes.get(target, 0) + size
        self.bytes += size

    async def run(self) -> None:
        """Drop files that were deleted, until cancelled."""
        rests_until: dict[Target, float] = {}
        while True:
            await self._look()
            await asyncio.sleep(SHORT_INTERVAL_S)
            often = self._stopped or 4 * self.bytes >= self._max_bytes
            for target in sorted(self._files, key=lambda each: each.name):
                began = loop_s()
                if began >= rests_until.get(target, 0.0) and (
                    often or began >= self._check_at[target]
                ):
                    await self._check(target)
                    rests_until[target] = loop_s() + REST * (loop_s() - began)
            rests_until = {t: at for t, at in rests_until.items() if t in self._files}

    async def _look(self) -> None:
        """Count what is left of topics that are read; once, and again until it is gone."""
        read = {t.name: t for topic in sorted(self._topics) for t in self._targets(topic)}
        targets = frozenset(read.values())  # a table of several topics counts for one of them
        self._left = {t: files for t, files in self._left.items() if t in targets}
        self._look_at = {t: at for t, at in self._look_at.items() if t in targets}
        for target in sorted(targets, key=lambda each: each.name):
            if loop_s() < self._look_at.get(target, 0.0):
                continue
            try:
                left = await self._left_of(target)
            except StagingUnavailable as exc:
                log(STAGING_LIST_FAILED, topic=target.topic, reason=str(exc))
            else:
                self._left[target] = left
            again = target not in self._left or self._left[target]
            self._look_at[target] = loop_s() + LONGEST_INTERVAL_S if again else inf

    async def _left_of(self, target: Target) -> dict[str, int]:
        if (known := self._left.get(target)) is not None:
            existing = frozenset(await self._staging.existing(target.name, known))
            return {name: size for name, size in known.items() if name in existing}
        if not (old := frozenset(await self._staging.older(target.name, LEFT_S))):
            return {}
        sizes, own = await self._staging.sizes(target.name), self._files.get(target, {})
        return {name: size for name, size in sizes.items() if name in old and name not in own}

    async def _check(self, target: Target) -> None:
        """Look at all files of a table: those that land may lie behind others that never do."""
        files = self._files[target]
        names = list(files)
        try:
            existing = frozenset(await self._staging.existing(target.name, names))
        except StagingUnavailable as exc:
            log(STAGING_LIST_FAILED, topic=target.topic, reason=str(exc))
            return
        for name in names:
            if name not in existing:
                self._count(target, -files.pop(name).bytes)
        if not files:
            del self._files[target], self._sizes[target], self._check_at[target]
            self._set_late(target, 0.0)
            return
        age_s = loop_s() - next(iter(files.values())).since
        self._set_late(target, max(age_s - self._freshness_s, 0.0))
        again_s = (
            self._check_age_s - age_s
            if age_s < self._check_age_s
            else min(age_s, LONGEST_INTERVAL_S)
        )
        self._check_at[target] = loop_s() + again_s

    def _set_late(self, target: Target, late_s: float) -> None:
        """Set how late a table is; rows wait for fewer files only where no table gains by more."""
        late = self._late[target.topic]
        late[target] = late_s
        self.late_s.pop(target.topic, None)
        if least_s := min(late.values()):
            self.late_s[target.topic] = least_s
