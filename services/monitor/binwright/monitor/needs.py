"""The topics that groups need, followed by the monitor: see `core.needs`."""

import asyncio
import time
from collections.abc import Callable

import structlog

from binwright.core import wire
from binwright.core.errors import WorldError
from binwright.core.messages import Needs
from binwright.core.needs import current, joined, same
from binwright.core.ports import Bus, Reader
from binwright.core.selection import Selection
from binwright.shell.letters import NEEDS_CONFIG, NEEDS_PARTITION, Decoder, read_on
from binwright.shell.pauses import Pause

log = structlog.get_logger()

RETRY_S, LONGEST_RETRY_S = 1.0, 60.0


class GroupNeeds:
    """What controllers ask for, beside what the monitor's own settings select."""

    def __init__(
        self, bus: Bus, topic: str, own: Selection, want: Callable[[Selection], None]
    ) -> None:
        """Read `topic`; call `want` whenever there is something else to measure."""
        self._bus, self._topic, self._own, self._want = bus, topic, own, want
        self._known: dict[str, Needs] = {}
        self._changed = True  # since the last time that `want` was called
        self._faults: tuple[str, ...] = ()

    async def run(self) -> None:
        """Follow, for ever, and whatever becomes of the topic; what was read last holds."""
        pause = Pause(LONGEST_RETRY_S, first_s=RETRY_S)
        while True:
            try:
                await self._bus.ensure(self._topic, 1, NEEDS_CONFIG)
                end = await self._bus.end(self._topic, NEEDS_PARTITION)
                reader = await self._bus.reader(self._topic, NEEDS_PARTITION, 0)
                pause = Pause(LONGEST_RETRY_S, first_s=RETRY_S)
                try:
                    await self._follow(reader, end)
                finally:
                    await reader.close()
            except WorldError as exc:
                log.warning("needs.unreadable", topic=self._topic, reason=str(exc))
                await asyncio.sleep(pause.next())

    async def _follow(self, reader: Reader, end: int) -> None:
        decoder = Decoder(wire.decode_needs)
        while True:
            records = await read_on(reader, "needs.delayed", topic=self._topic)
            if records is None:
                continue
            for _, needs in decoder.readable(records):
                self._changed |= not same(needs, self._known.get(needs.group))
                self._known[needs.group] = needs
            known = current(self._known, time.time_ns() // 1_000_000)
            self._changed |= len(known) < len(self._known)
            self._known = known
            if self._changed and reader.position >= end:  # at the start: one change for all
                self._settle()

    def _settle(self) -> None:
        self._changed = False
        wanted, faults = joined(self._own, self._known.values())
        for fault in sorted({*faults} - {*self._faults}):
            log.warning("pattern.refused", reason=fault)
        self._faults = faults
        groups, topics, patterns = len(self._known), len(wanted.topics), len(wanted.patterns)
        log.info("needs.read", groups=groups, topics=topics, patterns=patterns)
        if not (topics or patterns):
            log.warning("topics.none", reason="no settings name any, and no group has asked yet")
        self._want(wanted)
