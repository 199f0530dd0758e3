"""Compaction and vacuum by the table's only writer, beside its commits.

One job at a time in a process. A job that fails is logged and comes again; it ends nothing.
"""

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import dataclass

import structlog

from binwright.core.errors import WorldError
from binwright.core.ports import Lake

log = structlog.get_logger()

FIRST_VACUUM_S = 3600.0
"""From a claim to the first vacuum, if the interval is no shorter: tables move now and then."""


@dataclass(frozen=True, slots=True)
class HousekeepingRules:
    """When there is something to do."""

    compact_files: int = 0  # commits with rows, each about a file, until a compaction; 0: never
    vacuum_interval_s: float = 0.0  # 0: never
    target_file_bytes: int = 128_000_000


@dataclass(slots=True, eq=False)
class _Table:
    """What is known of one table since it was claimed."""

    topic: str
    lake: Lake
    vacuum_at: float
    served_at: float  # the last job
    small: int = 0  # files since the last compaction
    seen: bool = False  # it was looked what there was before


class Housekeeper:
    """Keeps the house of the tables that this process writes."""

    def __init__(self, rules: HousekeepingRules) -> None:
        self._rules = rules
        self._tables: dict[str, _Table] = {}
        self._changed = asyncio.Event()

    def claimed(self, topic: str, lake: Lake) -> None:
        """Take that this process writes the table from now on; how it looks is not known."""
        now = asyncio.get_running_loop().time()
        vacuum_at = now + min(self._rules.vacuum_interval_s, FIRST_VACUUM_S)
        self._tables[topic] = _Table(topic, lake, vacuum_at, now)
        self._changed.set()

    def committed(self, topic: str) -> None:
        """Take that a commit with rows was made."""
        if (table := self._tables.get(topic)) is not None:
            table.small += 1
            self._changed.set()

    def gave_up(self, topic: str) -> None:
        """Take that this process writes the table no more."""
        self._tables.pop(topic, None)

    async def run(self) -> None:
        """Do what is due, one job after the other, for ever."""
        while True:
            self._changed.clear()
            while (job := self._due()) is not None:
                try:
                    await job
                except Exception:  # our own fault, and landing is not to suffer for it
                    log.exception("housekeeping.failed")
            await self._idle()

    def _due(self) -> Awaitable[None] | None:
        """Return a job; whose table was served last comes last."""
        now = asyncio.get_running_loop().time()
        for table in sorted(self._tables.values(), key=lambda t: (t.served_at, t.topic)):
            if self._rules.compact_files and not table.seen:
                return self._look(table)
            if 0 < self._rules.compact_files <= table.small:
                return self._compact(table)
            if self._rules.vacuum_interval_s and now >= table.vacuum_at:
                return self._vacuum(table)
        return None

    async def _idle(self) -> None:
        at = None
        if self._rules.vacuum_interval_s:
            at = min((table.vacuum_at for table in self._tables.values()), default=None)
        with suppress(TimeoutError):
            async with asyncio.timeout_at(at):
                await self._changed.wait()

    # --- jobs ------------------------------------------------------------------------------------

    async def _look(self, table: _Table) -> None:
        """Count what the table's writers before us left behind: files beyond what it needs."""
        table.seen = True
        try:
            found = await table.lake.files(table.topic)
        except WorldError as exc:
            log.warning("housekeeping.blind", table=table.topic, reason=str(exc))
            return
        table.small += max(found.count - 1 - found.bytes // self._rules.target_file_bytes, 0)

    async def _compact(self, table: _Table) -> None:
        """Merge small files; if that fails it is tried again after as many commits."""
        began, table.small = self._serve(table), 0
        try:
            done = await table.lake.compact(table.topic)
        except WorldError as exc:
            log.warning("compaction.failed", table=table.topic, reason=str(exc))
            return
        took_s = round(asyncio.get_running_loop().time() - began, 1)
        counts = {"files_before": done.removed, "files_after": done.added}
        log.info("table.compacted", table=table.topic, **counts, took_s=took_s)

    async def _vacuum(self, table: _Table) -> None:
        """Delete files that nothing needs; if that fails it is tried again after the interval."""
        began = self._serve(table)
        table.vacuum_at = began + self._rules.vacuum_interval_s
        try:
            await table.lake.vacuum(table.topic)
        except WorldError as exc:
            log.warning("vacuum.failed", table=table.topic, reason=str(exc))
            return
        took_s = round(asyncio.get_running_loop().time() - began, 1)
        log.info("table.vacuumed", table=table.topic, took_s=took_s)

    @staticmethod
    def _serve(table: _Table) -> float:
        table.served_at = asyncio.get_running_loop().time()
        return table.served_at
