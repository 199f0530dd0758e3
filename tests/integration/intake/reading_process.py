"""A process that reads partitions as a consumer does, and tells what it took of memory.

    python -m tests.integration.intake.reading_process ADDRESS TOPIC PARTITIONS RECORDS

Large batches are decoded. Those that cannot be decoded are given up after `GIVE_UP_S` and stepped
over. Prints JSON.
"""

import asyncio
import json
import resource
import sys
from collections import defaultdict

from binwright.consumer.read import data_reader
from binwright.protocol.model import TopicPartition
from binwright.runtime.clock import loop_s
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.testing.records import in_rows

GIVE_UP_S, DEADLINE_S = 2.0, 120.0
FETCH_BYTES = 8 << 20


async def read(address: str, topic: str, partitions: int, count: int) -> None:
    """Read every partition from offset 0 on, `count` records in all."""
    sizes: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    given_up: dict[int, tuple[int, int, str, int]] = {}
    kafka = KafkaSettings(bootstrap_servers=address)
    async with data_reader.KafkaDataReader(kafka, "g") as reader:
        before = peak_bytes()
        for number in range(partitions):
            await reader.start(TopicPartition(topic, number), 0)
        until = loop_s() + DEADLINE_S
        while sum(map(len, sizes.values())) < count and loop_s() < until:
            for partition, records in (await reader.fetch(FETCH_BYTES, 0.5)).items():
                found = [(r.offset, len(r.value or b"")) for r in in_rows([records])]
                sizes[partition.partition].extend(found)
            for partition, batch in reader.undecodable().items():
                if batch.large:
                    reader.allow_large(partition, batch.next)
                    await reader.start(partition, batch.first)
                    continue
                stored = len(batch.content)
                given_up[partition.partition] = (batch.first, batch.next, batch.reason, stored)
                await reader.start(partition, batch.next)
    taken = peak_bytes() - before
    results = {"sizes": sizes, "given_up": given_up, "taken_bytes": taken}
    sys.stdout.write(f"{json.dumps(results)}\n")


def peak_bytes() -> int:
    """Return the most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    data_reader.GIVE_UP_S = GIVE_UP_S
    _, address, topic, partitions, count = sys.argv
    asyncio.run(read(address, topic, int(partitions), int(count)))
