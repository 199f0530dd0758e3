"""Reads the group's orders topic for all tables of a process: the newest order about each table."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from math import inf

from binwright.kafka.control_records import ORDERS_PARTITION, READ_S, Decoder
from binwright.protocol.errors import BrokerUnavailable, TopicMissing
from binwright.protocol.log_events import LogEvent
from binwright.protocol.orders import OperationOrder, OrderRecord, TableOrder, decode_order
from binwright.protocol.ports.kafka import ControlTopics, Reader, Record
from binwright.runtime.backoff import Backoff
from binwright.runtime.clock import loop_s
from binwright.runtime.logs import log

ORDERS_UNREACHABLE = LogEvent.warning(
    "orders.unreachable",
    "The group's orders topic cannot be read: no table is paused or resumed until it can. A "
    "controller creates it when it leads the group.",
)

RETRY_S, LONGEST_RETRY_S = 1.0, 30.0


class TableOrders:
    """The newest order about each table, while `run` reads.

    Attributes:
        read_at: As of when all orders are known; s, monotonic.
    """

    def __init__(self, bus: ControlTopics, topic: str) -> None:
        """Read this topic, which may not exist yet."""
        self.read_at = -inf
        self._bus, self._topic = bus, topic
        self._newest = _Newest()
        self._notified: dict[str, Callable[[], None]] = {}
        self._fault = ""

    def newest(self, table: str) -> TableOrder | None:
        """Return the newest order about a table; None: there is none."""
        return self._newest.pauses.get(table)

    def operation(self, table: str) -> OperationOrder | None:
        """Return the newest order of work on a table; None: there is none."""
        return self._newest.operations.get(table)

    def subscribe(self, table: str, notify: Callable[[], None]) -> None:
        """Call `notify` when there may be another order about the table, or `read_at` is later."""
        self._notified[table] = notify

    def unsubscribe(self, table: str) -> None:
        """Call it no more."""
        self._notified.pop(table, None)

    async def run(self) -> None:
        """Read for ever; what was read holds while Kafka is away."""
        pause = Backoff(LONGEST_RETRY_S, first_s=RETRY_S)
        while True:
            try:
                reader = await self._bus.reader(self._topic, ORDERS_PARTITION, 0)
                try:
                    await self._follow(reader, pause)
                finally:
                    await reader.close()
            except (BrokerUnavailable, TopicMissing) as exc:
                if (fault := str(exc)) != self._fault:
                    log(ORDERS_UNREACHABLE, topic=self._topic, reason=fault)
                self._fault = fault
                await asyncio.sleep(pause.next())

    async def _follow(self, reader: Reader, pause: Backoff) -> None:
        """Read from the beginning; older orders than the newest about a table are not shown."""
        decoder, newest = Decoder(decode_order), _Newest()
        while True:
            asked_at = loop_s()
            end = await self._bus.end(self._topic, ORDERS_PARTITION)
            while reader.position < end:
                newest = newest.after(decoder.decode(await reader.read(READ_S)))
            self._newest, self.read_at, self._fault = newest, asked_at, ""
            pause.reset()
            for table in newest.tables & self._notified.keys():
                self._notified[table]()
            # What comes now is shown once it is known to be the newest.
            newest = newest.after(decoder.decode(await reader.read(READ_S)))


@dataclass(frozen=True, slots=True)
class _Newest:
    """The newest orders, by table."""

    pauses: Mapping[str, TableOrder] = field(default_factory=dict)
    operations: Mapping[str, OperationOrder] = field(default_factory=dict)

    @property
    def tables(self) -> AbstractSet[str]:
        """Return the tables about which there is an order."""
        return self.pauses.keys() | self.operations.keys()

    def after(self, read: Iterable[tuple[Record, OrderRecord]]) -> "_Newest":
        """Return them once these records are read."""
        orders = [order for _, order in read]
        pauses = {each.table: each for each in orders if isinstance(each, TableOrder)}
        works = {each.table: each for each in orders if isinstance(each, OperationOrder)}
        return _Newest({**self.pauses, **pauses}, {**self.operations, **works})
