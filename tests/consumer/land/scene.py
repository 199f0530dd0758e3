"""Table writers on fakes: stages files as consumers would, and shows what landed."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import count
from types import MappingProxyType
from uuid import NAMESPACE_OID, uuid5

from binwright.consumer.decide.land.states import Portion, WriterConfig
from binwright.consumer.decode.json_values import JsonDecoder
from binwright.consumer.events import Event, RowsMissing, TableLost, WritingStopped
from binwright.consumer.land.announcements import LandingTopic
from binwright.consumer.land.backfill import EarlierStager
from binwright.consumer.land.context import SharedLake, WriterContext
from binwright.consumer.land.maintenance import MaintenanceConfig, TableMaintenance
from binwright.consumer.land.orders import TableOrders
from binwright.consumer.land.replay import BadRecordDecoder, DecodedAgain
from binwright.consumer.land.writers import Writers
from binwright.consumer.read.ranges import RangeReader
from binwright.consumer.stage.file_writer import RowWriter
from binwright.kafka.control_records import LANDING_PARTITIONS, landing_partition
from binwright.protocol import wire
from binwright.protocol.landing import OffsetRange, Staged
from binwright.protocol.metadata import TableReport
from binwright.protocol.model import Slot, TopicPartition
from binwright.protocol.names import BAD_SUFFIX, portion_name
from binwright.protocol.orders import OperationOrder, TableOrder
from binwright.protocol.ports.kafka import Record
from binwright.tables.columns import Columns, parse_columns
from binwright.tables.operations import Cursor
from binwright.tables.ports import BadPortion, Footer, Lake, Table, ValueDecoder
from binwright.tables.targets import Target
from binwright.testing.control_topics import FakeControlTopics, loop_ms
from binwright.testing.data_topics import FakeDataReader, FakeTopics
from binwright.testing.lake import FakeLake
from binwright.testing.lake_storage import FakeStorage
from binwright.testing.records import in_columns
from binwright.testing.staging import FakeStaging, footer_of

GROUP, CLUSTER, LANDING = "g", "cluster-a", "g.landing"
ORDERS = "g.group-orders"
P, Q = TopicPartition("orders", 0), TopicPartition("orders", 1)
COLUMNS = parse_columns("id BIGINT")
NO_MAINTENANCE = MaintenanceConfig()


class Scene:
    """One group on one cluster: topics, tables and staged files, shared by its processes."""

    def __init__(
        self, partitions: Mapping[str, int] | None = None, columns: Columns | None = None
    ) -> None:
        self.columns = columns  # of all tables; None: their rows are raw records
        self.cluster_by: tuple[str, ...] = ()  # of all tables
        self.primary_key: tuple[str, ...] = ()  # of all tables
        self.keep_s = 0.0  # of all tables
        self.retention_s = 0.0  # after which a vacuum deletes files of older versions
        self.register_as = ""  # of the one table
        self.from_earliest = False  # new tables are back-filled at once
        self.decoding = ""  # the settings by which values are decoded
        self.masking = ""  # those by which staged records are masked
        self.fixed: Columns | None = None  # beside which tables get columns for new fields
        self.topics = FakeTopics(partitions or {"orders": 2})
        self.bus = FakeControlTopics()
        self.storage = FakeStorage()
        self.staging = FakeStaging()
        self.bad_records = FakeBadRecordDecoder(staging=self.staging)
        self.named: dict[str, tuple[str, ...]] = {}  # topic -> its tables; else one of its name
        self._numbers = count(1)

    async def decoder_of(self, *_: object) -> ValueDecoder | None:
        """Fit `DecoderOf`."""
        if self.columns is None:
            return None
        decoder = JsonDecoder(self.columns)
        decoder.settings = self.decoding
        return decoder

    async def prepare(self) -> "Scene":
        """Make the group's topics."""
        await self.bus.ensure(LANDING, LANDING_PARTITIONS, {})
        await self.bus.ensure(ORDERS, 1, {})
        return self

    def produce(self, partition: TopicPartition, records: int) -> int:
        """Append records to a data topic; return its end."""
        return self.topics.produce(partition, *[b"x" * 10] * records) + records

    async def stage(
        self,
        ranges: Mapping[TopicPartition, tuple[int, int]],
        *,
        announce: bool = True,
        cut: bool = False,
        table: str | None = None,
        decoder: ValueDecoder | None = None,
    ) -> str:
        """Stage these ranges of the data topics as one file; return its name."""
        staged = await self.write(ranges, cut=cut, table=table, decoder=decoder)
        if announce:
            await self.announce(staged)
        return staged.file

    async def write(
        self,
        ranges: Mapping[TopicPartition, tuple[int, int]],
        *,
        cut: bool = False,
        table: str | None = None,
        decoder: ValueDecoder | None = None,
    ) -> Staged:
        """Write a file for a table, else for that of the topic's name; return its announcement.

        Without a decoder it is one of the scene's columns.
        """
        topic = next(iter(ranges)).topic
        file = f"0-1-{next(self._numbers)}-0a1b2c3d.parquet"
        now = asyncio.get_running_loop().time()
        rows = {
            p: [r for o, r in self.topics.log(p).read(now, first) if o < end and r is not None]
            for p, (first, end) in ranges.items()
        }
        footer = Footer(
            self.topics.topic_id(topic),
            sum(map(len, rows.values())),
            {p.partition: found for p, found in ranges.items()},
            topic=topic,
            masked_by=self.masking,
            cut=frozenset(p.partition for p in ranges) if cut else frozenset(),
        )
        if decoder is None and self.columns is not None:
            decoder = JsonDecoder(self.columns)
            decoder.settings = self.decoding
        size = await self.staging.write(table or topic, file, in_columns(rows), footer, decoder)
        return Staged(
            topic=topic,
            table=table,
            topic_id=footer.topic_id,
            file=file,
            rows=footer.rows,
            bytes=size,
            ranges={p: OffsetRange(*found) for p, found in ranges.items()},
            slot=Slot(0),
            epoch=1,
            cut=tuple(ranges) if cut else (),
        )

    async def announce(self, message: Staged) -> None:
        partition = landing_partition(message.target)
        await self.bus.publish(LANDING, partition, wire.key(message), wire.encode(message))

    async def order(self, *, paused: bool, topic: str = "orders") -> None:
        """Pause a table, or have it land again."""
        await self.give(
            TableOrder(topic=topic, paused=paused, by="ann@host", reason="a repair", at_ms=0)
        )

    async def replay(
        self, number: int = 1, *, topic: str = "orders", dry_run: bool = False
    ) -> OperationOrder:
        """Have a table's bad records decoded again; orders of the same number are one."""
        order = OperationOrder(
            table=topic, id=f"{number:032x}", work="replay", dry_run=dry_run, by="ann@host"
        )
        await self.give(order)
        return order

    async def erase(
        self, number: int = 1, *, where: str = "_kafka.offset >= 0", dry_run: bool = False
    ) -> None:
        """Have all rows of `orders` erased, and all bad records."""
        await self.give(
            OperationOrder(
                table="orders",
                id=f"{number:032x}",
                work="erase",
                where=where,
                dry_run=dry_run,
                by="ann@host",
                reason="asked to",
            )
        )

    async def backfill(
        self,
        number: int = 1,
        *,
        since_ms: int = 0,
        offsets: Mapping[TopicPartition, int] = MappingProxyType({}),
        dry_run: bool = False,
    ) -> None:
        """Have what is before the beginning of `orders` landed."""
        await self.give(
            OperationOrder(
                table="orders",
                id=f"{number:032x}",
                work="backfill",
                since_ms=since_ms,
                offsets=dict(offsets),
                dry_run=dry_run,
                by="ann@host",
            )
        )

    async def give(self, order: TableOrder | OperationOrder) -> None:
        await self.bus.publish(ORDERS, 0, wire.key(order), wire.encode(order))

    async def land(self, ranges: Mapping[TopicPartition, tuple[int, int]]) -> str:
        """Produce the records of these ranges and stage them as one file."""
        for partition, (_, end) in ranges.items():
            if (missing := end - self.topics.bounds(partition)[1]) > 0:
                self.produce(partition, missing)
        return await self.stage(ranges)

    def files(self, topic: str = "orders") -> set[str]:
        """Return the names of the staged files that exist."""
        return set(self.staging.files.get(topic, {}))

    def bad(self, topic: str = "orders") -> dict[TopicPartition, list[int]]:
        """Return the offsets of the topic's bad records that landed, in that order."""
        rows = self.storage.table(topic + BAD_SUFFIX).rows
        return {p: [r.offset for r in records] for p, records in rows.items() if records}

    def landed(self, partition: TopicPartition = P) -> Counter[int]:
        return Counter(self.storage.landed().get(partition, Counter()))


def once(end: int, first: int = 0) -> Counter[int]:
    """Every offset from `first` up to `end`, once."""
    return Counter(range(first, end))


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeBadRecordDecoder(BadRecordDecoder):
    """Decodes bad records again as a `FakeStaging` decodes them."""

    staging: FakeStaging

    async def decode(self, target: Target, read: BadPortion, *, dry_run: bool) -> DecodedAgain:
        """Fit `BadRecordDecoder.decode`."""
        staging, rows = self.staging, read.rows
        if not rows:
            return DecodedAgain(Portion())
        left = [row for row in rows if staging.is_bad(row.record)]
        skipped = [row for row in rows if row not in left and staging.is_skipped(row.record)]
        good = [row for row in rows if row not in left and row not in skipped]
        records: dict[TopicPartition, list[Record]] = {}
        for row in good:
            records.setdefault(row.place.partition, []).append(row.record)
        places = {p: (own[0].offset, own[-1].offset + 1) for p, own in records.items()}
        file, size = "", 0
        if good and not dry_run:
            file = portion_name(uuid5(NAMESPACE_OID, f"{rows[0]} {staging.written}").hex)
            footer = replace(
                footer_of(records), ranges={p.partition: ends for p, ends in places.items()}
            )
            size = await staging.write(
                target.name, file, in_columns(records), footer, JsonDecoder(COLUMNS)
            )
        last = rows[-1].place
        portion = Portion(
            after=Cursor(*last.partition, last.offset),
            file=file,
            bytes=size,
            rows=len(good),
            places=places,
            moved=Counter(row.kind for row in good),
            left=Counter(row.kind for row in left),
            skipped=len(skipped),
        )
        changed = [replace(row, reason="mended in vain") for row in left]
        return DecodedAgain(portion, [row.place for row in (*good, *skipped)], changed)


class Process:
    """One consumer process that writes tables."""

    def __init__(
        self,
        scene: Scene,
        name: str,
        *,
        maintenance: MaintenanceConfig = NO_MAINTENANCE,
        freshness_s: float = 1.0,
        from_latest: bool = False,
        batch_bytes: int = 1 << 30,
        idle_stamp_s: float = 43_200.0,
        append_limit_s: float = 60.0,
        bad_share: float = 1.0,
        masking: str = "",
        servers: Mapping[str, str] = MappingProxyType({}),  # of tables on another one
        in_place: bool = False,
    ) -> None:
        self.earlier_reader = FakeDataReader(scene.topics, GROUP)
        self.lake = FakeLake(scene.storage, scene.staging)
        self.reader = FakeDataReader(scene.topics, GROUP)
        self.opened = 0
        self.gaps: list[dict[TopicPartition, int]] = []
        self.lost: list[str] = []
        self.written: list[tuple[str, float]] = []
        self._name, self._attempts = name, count(1)
        self._table = Table(
            *("", GROUP, CLUSTER, scene.columns, scene.cluster_by),
            primary_key=scene.primary_key,
            keep_s=scene.keep_s,
            register_as=scene.register_as,
        )
        self._settings = {
            "freshness_s": freshness_s,
            "from_latest": from_latest,
            "batch_bytes": batch_bytes,
            "idle_stamp_s": idle_stamp_s,
            "bad_share": bad_share,
            "masking": masking,
            "decoding": scene.decoding,
            "fixed": scene.fixed,
            "retention_s": scene.retention_s,
            "in_place": in_place,
            "from_earliest": scene.from_earliest,
        }

        def server(table: str) -> str:
            return servers.get(table, "sc://spark")

        self.context = WriterContext(
            lake=SharedLake(self._open_lake),
            targets=lambda topic: [
                Target(topic, name) for name in scene.named.get(topic, (topic,))
            ],
            server=server,
            append_limit_s=append_limit_s,
            bus=scene.bus,
            landing_topic=LANDING,
            announcements=LandingTopic(scene.bus, LANDING, loop_ms),
            orders=TableOrders(scene.bus, ORDERS),
            reader=self.reader,
            staging=scene.staging,
            config=self._writer_config,
            maintenance=TableMaintenance(maintenance, server, asyncio.get_running_loop().time),
            bad_records=scene.bad_records,
            earlier=EarlierStager(
                reader=RangeReader(lambda: nullcontext(self.earlier_reader), scene.staging),
                writer=RowWriter(staging=scene.staging, decoder_of=scene.decoder_of),
                piece_bytes=2_000,
            ),
        )
        self.writers = Writers(self.context, self._record_event)
        self.running: asyncio.Task[None] | None = None

    async def _open_lake(self) -> Lake:
        self.opened += 1
        return self.lake

    def _writer_config(self, target: Target) -> WriterConfig:
        writer = uuid5(NAMESPACE_OID, f"{self._name}/{next(self._attempts)}").hex
        table = replace(self._table, topic=target.topic, named=target.name)
        return WriterConfig(table=table, writer=writer, **self._settings)  # type: ignore[arg-type]

    def _record_event(self, event: Event) -> None:
        match event:
            case TableLost(topic=topic):
                self.lost.append(topic)
            case WritingStopped(topic=topic):
                self.written.append((topic, asyncio.get_running_loop().time()))
            case RowsMissing(committed=committed):
                self.gaps.append(dict(committed))
            case _:
                raise AssertionError(f"{event} is not of a writer")

    def report(self, table: str = "orders") -> TableReport:
        every = self.writers.reports().values()
        return next(tables[table] for tables in every if table in tables)

    @property
    def claims(self) -> int:
        """The number of claims."""
        return sum(name == "claim" for name, _ in self.lake.calls)

    def appending(self, topic: str) -> bool:
        """Whether an append is under way."""
        last = [name for name, table in self.lake.calls if table == topic][-1]
        return last.startswith("append") and self.writers._tables[topic].writer.committing

    def kill(self) -> None:
        """Cancel it: calls in flight go on."""
        if self.running:
            self.running.cancel()


@asynccontextmanager
async def process(
    scene: Scene, *topics: str, name: str = "w1", **options: object
) -> AsyncIterator[Process]:
    """Run a consumer that writes these tables."""
    found = Process(scene, name, **options)  # type: ignore[arg-type]
    found.running = asyncio.create_task(found.writers.run())
    found.writers.start(topics)
    try:
        yield found
    finally:
        found.kill()
        await asyncio.wait({found.running})


@asynccontextmanager
async def writing() -> AsyncIterator[tuple[Scene, Process]]:
    """Run a writer of `orders` in a scene of its own; its claim is committed."""
    scene = await Scene().prepare()
    async with process(scene, "orders") as writer:
        await seconds(5)
        yield scene, writer


async def seconds(duration_s: float) -> None:
    await asyncio.sleep(duration_s)


async def land_read_again(scene: Scene, writer: Process) -> None:
    """Let the ranges that were missed be staged again, decoded as they are now."""
    for _ in range(4):
        await seconds(20)
        for gap in writer.gaps:
            for partition, offset in gap.items():
                await scene.stage({partition: (offset, scene.topics.bounds(partition)[1])})
        writer.gaps.clear()
