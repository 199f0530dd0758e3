"""Provisional: replaced by the full adapter."""

import json

from aiokafka import AIOKafkaConsumer, OffsetAndMetadata, TopicPartition as TP
from aiokafka.admin import AIOKafkaAdminClient

from binwright.core.model import TopicPartition
from binwright.core.ports import Hint, Record
from binwright.shell.broker import client_options


class KafkaIntake:
    def __init__(self, kafka, group, topics, isolation):
        self.o = client_options(kafka)
        self.group, self.topics = group, topics
        self.c = AIOKafkaConsumer(**self.o, group_id=group, enable_auto_commit=False, auto_offset_reset="none",
                                  isolation_level=isolation, fetch_max_bytes=8 << 20)
        self.b = AIOKafkaConsumer(**self.o, enable_auto_commit=False)
        self.a = AIOKafkaAdminClient(**self.o)
        self.on = set()

    async def __aenter__(self):
        await self.c.start()
        await self.b.start()
        await self.a.start()
        parts = []
        md = await self.a.describe_topics(list(self.topics))
        for t in md:
            parts += [TP(t["topic"], p["partition"]) for p in t["partitions"]]
        self.c.assign(parts)
        for p in parts:
            self.c.seek(p, 0)
        self.c.pause(*parts)
        return self

    async def __aexit__(self, *_):
        await self.c.stop()
        await self.b.stop()
        await self.a.close()

    async def start(self, partition, offset):
        self.c.seek(TP(*partition), offset)
        self.c.resume(TP(*partition))
        self.on.add(partition)

    def stop(self, partition):
        self.on.discard(partition)
        self.c.pause(TP(*partition))

    async def fetch(self, max_bytes, timeout_s):
        got = await self.c.getmany(timeout_ms=int(timeout_s * 1000), max_records=20000)
        out = {}
        for tp, rs in got.items():
            p = TopicPartition(tp.topic, tp.partition)
            if p in self.on:
                out[p] = [Record(r.offset, r.timestamp, r.key, r.value, r.timestamp_type, tuple(r.headers)) for r in rs]
        return out

    async def bounds(self, partitions):
        ps = [TP(*p) for p in partitions]
        b, e = await self.b.beginning_offsets(ps), await self.b.end_offsets(ps)
        return {p: (b[TP(*p)], e[TP(*p)]) for p in partitions}

    async def hints(self, partitions):
        got = await self.a.list_consumer_group_offsets(self.group, partitions=[TP(*p) for p in partitions])
        out = {}
        for tp, om in got.items():
            if om.offset >= 0 and om.metadata:
                m = json.loads(om.metadata)
                out[TopicPartition(tp.topic, tp.partition)] = Hint(om.offset, m["v"], m["t"])
        return out

    async def hint(self, hints):
        await self.c.commit({TP(*p): OffsetAndMetadata(h.offset, json.dumps({"v": h.version, "t": h.table})) for p, h in hints.items()})

    def lost(self):
        return {}
