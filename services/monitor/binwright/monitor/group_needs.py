"""Follows which topics the groups need measured; see `decide.needs`."""

import asyncio
from collections.abc import Callable

from binwright.kafka.control_records import NEEDS_CONFIG, NEEDS_PARTITION, Decoder, read_or_log
from binwright.kafka.own_topics import ensure_own
from binwright.monitor.decide.needs import current_needs, merge_needs, received, same_needs
from binwright.protocol.errors import ExternalError
from binwright.protocol.log_events import LogEvent
from binwright.protocol.metrics import Needs, decode_needs
from binwright.protocol.ports.kafka import ControlTopics, Reader
from binwright.protocol.selection import Selection
from binwright.runtime.backoff import Backoff
from binwright.runtime.clock import wall_ms
from binwright.runtime.logs import log

NEEDS_UNREADABLE = LogEvent.warning(
    "needs.unreadable",
    "The monitor cannot read the needs topic; it measures what its settings name.",
)
NEEDS_DELAYED = LogEvent.warning(
    "needs.delayed", "The needs topic cannot be read at the moment; what was read last holds."
)
PATTERN_REFUSED = LogEvent.warning(
    "pattern.refused", "A group's pattern is not a regular expression and is ignored."
)
NEEDS_READ = LogEvent.info("needs.read", "The set of topics that groups want measured has changed.")
TOPICS_NONE = LogEvent.warning("topics.none", "The monitor has nothing to measure yet.")

RETRY_S, LONGEST_RETRY_S = 1.0, 60.0


class GroupNeeds:
    """The topics that controllers request, merged with the monitor's own selection."""

    def __init__(
        self, bus: ControlTopics, topic: str, own: Selection, on_change: Callable[[Selection], None]
    ) -> None:
        """Read `topic`; call `on_change` with the merged selection whenever it changes."""
        self._bus, self._topic, self._own, self._on_change = bus, topic, own, on_change
        self._known: dict[str, Needs] = {}
        self._changed = True  # since the last call of `on_change`
        self._faults: tuple[str, ...] = ()

    async def run(self) -> None:
        """Follow until cancelled; after an error the last needs read stay in force."""
        pause = Backoff(LONGEST_RETRY_S, first_s=RETRY_S)
        while True:
            try:
                await ensure_own(self._bus, self._topic, 1, NEEDS_CONFIG)
                end = await self._bus.end(self._topic, NEEDS_PARTITION)
                reader = await self._bus.reader(self._topic, NEEDS_PARTITION, 0)
                pause.reset()
                try:
                    await self._follow(reader, end)
                finally:
                    await reader.close()
            except ExternalError as exc:
                log(NEEDS_UNREADABLE, topic=self._topic, reason=str(exc))
                await asyncio.sleep(pause.next())

    async def _follow(self, reader: Reader, end: int) -> None:
        decoder = Decoder(decode_needs)
        while True:
            records = await read_or_log(reader, NEEDS_DELAYED, topic=self._topic)
            if records is None:
                continue
            for _, needs in decoder.decode(records):
                self._changed |= not same_needs(needs, self._known.get(needs.group))
                self._known[needs.group] = received(needs, wall_ms())
            known = current_needs(self._known, wall_ms())
            self._changed |= len(known) < len(self._known)
            self._known = known
            if self._changed and reader.position >= end:  # at the start: one change for all records
                self._apply()

    def _apply(self) -> None:
        self._changed = False
        selection, faults = merge_needs(self._own, self._known.values())
        for fault in sorted({*faults} - {*self._faults}):
            log(PATTERN_REFUSED, reason=fault)
        self._faults = faults
        groups, topics, patterns = len(self._known), len(selection.topics), len(selection.patterns)
        log(NEEDS_READ, groups=groups, topics=topics, patterns=patterns)
        if not (topics or patterns):
            log(TOPICS_NONE, reason="no settings name any, and no group has asked yet")
        self._on_change(selection)
