"""Detects that this controller has lost its connection to Kafka.

Without that, a controller that is cut off would declare live consumers dead, because it reads
nothing from them.
"""

import asyncio

from binwright.kafka.control_records import CONTROLLER_PARTITION
from binwright.protocol.errors import BrokerUnavailable, TopicMissing
from binwright.protocol.log_events import LogEvent
from binwright.protocol.ports.kafka import ControlTopics, Reader
from binwright.runtime.clock import loop_s
from binwright.runtime.logs import log

READER_DISCONNECTED = LogEvent.warning(
    "reader.disconnected",
    "The controller has lost its connection to Kafka and declares no consumer dead meanwhile.",
)
READER_RECONNECTED = LogEvent.warning(
    "reader.reconnected", "The controller's connection to Kafka is back."
)
READER_CHECK_FAILED = LogEvent.debug(
    "reader.check_failed", "Kafka did not return the end of metadata partition 0."
)

CHECK_S = 1.0
STALE_S = 3.0
"""How old the last successful check may be. Together with a tick this must stay below half the
consumer timeout: after a longer gap between ticks the machine restarts all consumers' timeouts, as
it does after its own process was suspended."""


class ConnectionCheck:
    """Compares a reader's position with the end of metadata partition 0, once a second."""

    def __init__(self, bus: ControlTopics, topic: str, reader: Reader) -> None:
        self._bus, self._topic, self._reader = bus, topic, reader
        self._requested_at = self._checked_at = loop_s()
        self._end: int | None = None  # not read yet when it was requested last
        self._disconnected = False

    def is_connected(self) -> bool:
        """Whether all records of a moment ago (`STALE_S`) have been read."""
        self._caught_up()
        disconnected = loop_s() - self._checked_at > CHECK_S + STALE_S
        if disconnected != self._disconnected:
            log(
                READER_DISCONNECTED if disconnected else READER_RECONNECTED,
                effect="no consumer is declared dead while disconnected",
            )
        self._disconnected = disconnected
        return not disconnected

    async def run(self) -> None:
        """Request the partition's end once a second, and again once it has been read; for ever.

        All controllers of a process request it at the same moments: a bus makes one request of
        them.
        """
        while True:
            if self._caught_up():
                requested_at = loop_s()
                try:
                    self._end = await self._bus.end(self._topic, CONTROLLER_PARTITION)
                except (BrokerUnavailable, TopicMissing) as exc:
                    log(READER_CHECK_FAILED, reason=str(exc))
                else:
                    self._requested_at = requested_at
            await asyncio.sleep(CHECK_S - loop_s() % CHECK_S)

    def _caught_up(self) -> bool:
        """Whether the partition has been read up to its last known end."""
        if self._end is not None and self._reader.position >= self._end:
            self._end, self._checked_at = None, self._requested_at
        return self._end is None
