"""Batches that inflate to much memory, or are damaged, as a broker returns them."""

import asyncio
import json
import struct
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cramjam
import pytest
from aiokafka import TopicPartition as KafkaPartition
from aiokafka.admin import NewTopic
from aiokafka.protocol.produce import ProduceRequest
from tests.integration.intake.data_topic import DataTopic, new_data_topic
from tests.integration.intake.reading_process import DEADLINE_S
from tests.kafka.batches import (
    ATTRIBUTES_AT,
    GZIP,
    LZ4,
    SNAPPY,
    ZSTD,
    built,
    checksummed,
    java_snappy,
)

from binwright.local.kafka import run_broker

pytestmark = pytest.mark.integration

MOST_STORED = 40_000_000
"""Snappy packs zeros to a twentieth only, so this topic takes large batches."""
HEADER_BYTES, LENGTH_AT = 61, 8
PIECE_BYTES = 1 << 20
LIMIT_BYTES = 128_000_000


def varint(number: int) -> bytes:
    """Return a number >= 0 as records have it."""
    left, out = number << 1, bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*out, left])


def zeros(size: int) -> Iterator[bytes]:
    """Yield the bytes of one record whose value is zeros."""
    head = b"\0\0\0\1" + varint(size)  # attributes, timestamp and offset; no key; the value's size
    yield varint(len(head) + size + 1) + head
    for at in range(0, size, PIECE_BYTES):
        yield bytes(min(PIECE_BYTES, size - at))
    yield varint(0)  # headers


def gzip(size: int) -> bytes:
    stream = zlib.compressobj(9, wbits=31)
    return b"".join([*map(stream.compress, zeros(size)), stream.flush()])


def snappy(size: int) -> bytes:
    """Compress in blocks, as Java does: a broker would run out of memory with a single one."""
    return java_snappy(b"".join(zeros(size)))


def lz4(size: int) -> bytes:
    return streamed(cramjam.lz4.Compressor(content_checksum=False, block_linked=False), size)


def zstd(size: int) -> bytes:
    return streamed(cramjam.zstd.Compressor(), size)


def streamed(stream: Any, size: int) -> bytes:
    for piece in zeros(size):
        stream.compress(piece)
    return bytes(stream.finish())


def bomb(codec: int, compressed: bytes) -> bytes:
    """Return a batch of one record."""
    batch = bytearray(built([(b"", [])]))[:HEADER_BYTES] + compressed
    struct.pack_into(">i", batch, LENGTH_AT, len(batch) - LENGTH_AT - 4)
    struct.pack_into(">h", batch, ATTRIBUTES_AT, codec)
    return checksummed(batch)


BOMBS: dict[int, tuple[int, Callable[[int], bytes], int]] = {
    0: (GZIP, gzip, 900_000_000),
    1: (SNAPPY, snappy, 600_000_000),
    2: (LZ4, lz4, 1_500_000_000),
    3: (ZSTD, zstd, 2_000_000_000),
}
"""Partition -> codec, how to compress, and the size of the record."""
FINE = 4


async def produce(topic: DataTopic, partition: int, batch: bytes) -> None:
    request = ProduceRequest(None, 1, 10_000, [(topic.topic, [(partition, batch)])])
    client = topic.producer.client
    node = client.cluster.leader_for_partition(KafkaPartition(topic.topic, partition))
    answer = await client.send(node, request)
    assert answer.topics[0][1][0][1] == 0, answer


async def read_by_a_process(topic: DataTopic, partitions: int, records: int) -> dict[str, Any]:
    module = "tests.integration.intake.reading_process"
    arguments = (topic.address, topic.topic, str(partitions), str(records))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", module, *arguments, stdout=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(2 * DEADLINE_S):
        out, _ = await process.communicate()
    assert process.returncode == 0
    results: dict[str, Any] = json.loads(out.splitlines()[-1])
    return results


async def test_a_bomb_of_any_codec_costs_bounded_memory_and_delays_no_other_partition(
    broker: str,
) -> None:
    """Without a limit each consumer that got such a partition would be killed."""
    async with new_data_topic(broker, "unused") as topic:
        topic.topic = "bombs"
        config = {"max.message.bytes": str(MOST_STORED)}
        new = NewTopic("bombs", len(BOMBS) + 1, 1, topic_configs=config)
        await topic.admin.create_topics([new])
        await topic.produce(FINE, b"fine")
        for partition, (codec, compress, size) in BOMBS.items():
            await produce(topic, partition, bomb(codec, compress(size)))
            await topic.produce(partition, b"behind")
        results = await read_by_a_process(topic, len(BOMBS) + 1, len(BOMBS) + 1)

    assert results["sizes"] == {str(FINE): [[0, 4]], **{str(p): [[1, 6]] for p in BOMBS}}
    for partition in BOMBS:
        first, behind, reason, stored = results["given_up"][str(partition)]
        assert (first, behind) == (0, 1)
        assert "inflates to more than 128,000,000 bytes" in reason
        assert 0 < stored < MOST_STORED
    assert results["taken_bytes"] < 2 * LIMIT_BYTES


async def test_a_batch_damaged_on_disk_is_given_up_and_its_partition_goes_on(
    tmp_path: Path,
) -> None:
    async with (
        run_broker(tmp_path) as server,
        new_data_topic(server.bootstrap_servers, "orders") as topic,
    ):
        for value in (b"first", b"damaged", b"last"):
            await topic.produce(0, value)
        await topic.produce(1, b"fine")
        await server.stop()
        (log,) = tmp_path.rglob("orders-0/*.log")  # noqa: ASYNC240 - nothing else runs meanwhile
        content = log.read_bytes()
        assert content.count(b"damaged") == 1
        log.write_bytes(content.replace(b"damaged", b"dAmaged"))
        await server.start()
        results = await read_by_a_process(topic, 2, 3)

    assert results["sizes"] == {"0": [[0, 5], [2, 4]], "1": [[0, 4]]}
    first, behind, reason, _ = results["given_up"]["0"]
    assert (first, behind) == (1, 2)
    assert "Invalid CRC" in reason
