"""Record batches as Kafka stores them, including those that aiokafka's producer cannot build."""

import struct

from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.util import calc_crc32c

CRC_AT, CRC_FROM = 17, 21


def stored(first: int, count: int, *, compression: int = 0, header: bytes = b"") -> bytes:
    """Return a batch; `header` (4 bytes) replaces the second record's header key."""
    builder = DefaultRecordBatchBuilder(2, compression, False, -1, -1, -1, 1 << 20)  # noqa: FBT003
    for number in range(count):
        builder.append(number, 1_000 + number, b"k", b"v%d" % number, [(f"key{number}", b"x")])
    content = bytearray(builder.build())
    struct.pack_into(">q", content, 0, first)
    if header:
        at = content.index(b"key1")
        content[at : at + 4] = header
    struct.pack_into(">I", content, CRC_AT, calc_crc32c(bytes(content[CRC_FROM:])))
    return bytes(content)


def torn(content: bytes) -> bytes:
    """Return the batch with one wrong bit."""
    return content[:-1] + bytes([content[-1] ^ 1])
