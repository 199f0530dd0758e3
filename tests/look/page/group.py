"""A group as its processes would report it, on a `FakeControlTopics`, and the page of it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from binwright.local.server import reserve_port
from binwright.look.page.order_desk import OrderDesk
from binwright.look.page.server import Page
from binwright.protocol import wire
from binwright.protocol.metadata import (
    Claim,
    Hello,
    Inbound,
    Planned,
    Proposed,
    Report,
    Started,
    Stopped,
    TableReport,
)
from binwright.protocol.metrics import Measurement, PartitionRate
from binwright.protocol.model import BytesPerSecond, Slot, TopicPartition
from binwright.protocol.orders import OrderRecord
from binwright.runtime.http import Listener
from binwright.runtime.run import background_tasks, must_not_end
from binwright.runtime.settings.group import load_settings
from binwright.testing.control_topics import FakeControlTopics, loop_ms

GROUP, METADATA, METRICS = "eu", "eu.metadata", "binwright.metrics"
ORDERS = "eu.group-orders"
TOPICS = {METADATA: 1, METRICS: 1, ORDERS: 1}
LIMIT = BytesPerSecond(1_000_000)
CONNECT_S = 20.0

Reading = Mapping[TopicPartition, int | None]


def page(*topics: str, pattern: bool = False, desk: OrderDesk | None = None) -> Page:
    """Return the page of a group of these topics, or of whichever there are."""
    wanted = {"topic_patterns": (".*",)} if pattern else {"topics": topics or ("orders",)}
    settings = load_settings(group=GROUP, **wanted)
    return Page(settings, desk=desk, now_ms=loop_ms)


def table(**more: object) -> TableReport:
    return TableReport(**{"state": "landing", "committed": {}, **more})  # type: ignore[arg-type]


@dataclass
class Group:
    """What is reported, on the bus that the page reads."""

    bus: FakeControlTopics = field(default_factory=lambda: FakeControlTopics(TOPICS))
    epochs: dict[int, int] = field(default_factory=dict)
    passes: int = 0

    async def post(self, message: Inbound) -> int:
        return await self.bus.publish(METADATA, 0, wire.key(message), wire.encode(message))

    async def give(self, order: OrderRecord) -> None:
        """Give an order, as a person does."""
        await self.bus.publish(ORDERS, 0, wire.key(order), wire.encode(order))

    async def claim(self, controller: str = "c1", **more: object) -> None:
        await self.post(Claim(**{"controller": controller, "limit": LIMIT, **more}))  # type: ignore[arg-type]

    async def consumer(self, slot: int, reading: Reading, **more: object) -> None:
        """Report a consumer, a new one after its Hello."""
        if slot not in self.epochs:
            hello = Hello(slot=Slot(slot), process=f"p{slot}", version="1")
            self.epochs[slot] = await self.post(hello)
        fields = {"term": 0, "ready": True, "writing": {}, "rate": 1000.0, **more}
        report = Report(slot=Slot(slot), epoch=self.epochs[slot], reading=reading, **fields)  # type: ignore[arg-type]
        await self.post(report)

    async def move(self, partition: TopicPartition, old: int, new: int, pause_s: float) -> None:
        """Stop a partition at one consumer, and start it at another one so much later."""
        now_ms = loop_ms()
        await self.post(
            Stopped(
                slot=Slot(old),
                epoch=self.epochs[old],
                revision=1,
                next={partition: 5},
                stopped_ms=now_ms - round(pause_s * 1000),
            )
        )
        epoch = self.epochs[new]
        await self.post(Started(slot=Slot(new), epoch=epoch, revision=1, offsets={partition: 5}))

    async def measure(self, rates: Sequence[float | None], topic: str = "orders") -> None:
        """Publish the rates of a topic's partitions; each log ends at 100."""
        self.passes += 1
        found = tuple(
            PartitionRate(n, None if rate is None else BytesPerSecond(rate), 30, 100, 0, 10.0)
            for n, rate in enumerate(rates)
        )
        message = Measurement(
            topic=topic,
            at_ms=loop_ms(),
            monitor="m",
            number=self.passes,
            interval_s=1,
            count=len(found),
            partitions=found,
        )
        await self.bus.publish(METRICS, 0, wire.key(message), wire.encode(message))

    async def plan(self, targets: Mapping[TopicPartition, int], reason: str = "overload") -> None:
        slots = {p: Slot(slot) for p, slot in targets.items()}
        await self.post(
            Planned(
                term=0,
                reasons=(reason,),
                consumers=len(set(targets.values())),
                moves=slots,
                rscore=0.5,
                rates={},
                targets=slots,
            )
        )

    async def propose(
        self, owners: Mapping[TopicPartition, int], targets: Mapping[TopicPartition, int]
    ) -> int:
        return await self.post(
            Proposed(
                term=0,
                reasons=("consumer 0 is over its limit",),
                consumers=2,
                rscore=0.25,
                owners={p: Slot(slot) for p, slot in owners.items()},
                targets={p: Slot(slot) for p, slot in targets.items()},
                waits=True,
            )
        )


def port() -> int:
    with reserve_port() as found:
        return found


@contextlib.asynccontextmanager
async def serving(
    shown: Page, bus: FakeControlTopics, at: int, token_file: Path | None = None
) -> AsyncIterator[str]:
    """Serve the page; give its address once it answers."""
    address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    listener = Listener("127.0.0.1", at, "--port", token_file=token_file)
    serve = shown.serve(lambda: contextlib.nullcontext(bus), listener, address.set_result)
    async with background_tasks(must_not_end(serve)):
        async with asyncio.timeout(CONNECT_S):
            found = await address
        yield f"{found}/"
