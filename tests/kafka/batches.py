"""Record batches as Kafka stores them, including those that aiokafka's producer cannot build."""

import struct
from collections.abc import Sequence

import cramjam
from aiokafka import AIOKafkaProducer
from aiokafka import TopicPartition as KafkaPartition
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder
from aiokafka.record.util import calc_crc32c

from binwright.protocol.model import TopicPartition

CRC_AT, ATTRIBUTES_AT = 17, 21
TRANSACTIONAL, CONTROL = 0x10, 0x20
GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
Headers = Sequence[tuple[str, bytes | None]]


def stored(first: int, count: int, *, compression: int = 0, header: bytes = b"") -> bytes:
    """Return a batch; `header` (4 bytes) replaces the second record's header key."""
    content = bytearray(
        built([(b"v%d" % number, [(f"key{number}", b"x")]) for number in range(count)], compression)
    )
    struct.pack_into(">q", content, 0, first)
    if header:
        at = content.index(b"key1")
        content[at : at + 4] = header
    return checksummed(content)


def built(
    records: Sequence[tuple[bytes, Headers]], compression: int = 0, key: bytes = b"k"
) -> bytes:
    """Return a batch of these values and headers, from offset 0 on."""
    builder = DefaultRecordBatchBuilder(2, compression, False, -1, -1, -1, 1 << 31)  # noqa: FBT003
    for number, (value, headers) in enumerate(records):
        builder.append(number, 1_000 + number, key, value, headers)
    return bytes(builder.build())


def legacy(magic: int, count: int, *, compression: int = 0, value: bytes = b"v") -> bytes:
    """Return batches of format 0 or 1, from offset 0 on; a record each if uncompressed."""
    builder = LegacyRecordBatchBuilder(magic, compression, 1 << 31)
    for number in range(count):
        builder.append(number, None if magic == 0 else 1_000 + number, b"k", value)
    return bytes(builder.build())


def marker(first: int) -> bytes:
    """Return a batch as Kafka ends a transaction with, which it aborts."""
    content = bytearray(built([(b"", [])], key=bytes(4)))
    struct.pack_into(">q", content, 0, first)
    struct.pack_into(">h", content, ATTRIBUTES_AT, TRANSACTIONAL | CONTROL)
    return checksummed(content)


def checksummed(content: bytearray) -> bytes:
    """Return the batch with the checksum of its content."""
    struct.pack_into(">I", content, CRC_AT, calc_crc32c(bytes(content[ATTRIBUTES_AT:])))
    return bytes(content)


def torn(content: bytes) -> bytes:
    """Return the batch with one wrong bit."""
    return content[:-1] + bytes([content[-1] ^ 1])


def java_snappy(*pieces: bytes) -> bytes:
    """Compress as Java's producer does: in blocks of 32 KiB."""
    out = bytearray(b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1))
    for piece in pieces:
        for at in range(0, len(piece), 1 << 15):
            block = bytes(cramjam.snappy.compress_raw(piece[at : at + (1 << 15)]))
            out += struct.pack(">i", len(block)) + block
    return bytes(out)


async def produce(producer: AIOKafkaProducer, partition: TopicPartition, batch: bytes) -> int:
    """Write a batch as it is; return its first offset."""
    request = ProduceRequest(None, 1, 10_000, [(partition.topic, [(partition.partition, batch)])])
    await producer.partitions_for(partition.topic)
    node = producer.client.cluster.leader_for_partition(KafkaPartition(*partition))
    answer = await producer.client.send(node, request)
    ((_, ((_, code, offset, *_),)),) = answer.topics
    assert code == 0, answer
    return int(offset)
