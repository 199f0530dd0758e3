"""Record batches of one record that inflate to much memory."""

import struct
import zlib
from collections.abc import Iterator
from typing import Any

import cramjam
from tests.kafka.batches import ATTRIBUTES_AT, built, checksummed, java_snappy

HEADER_BYTES, LENGTH_AT = 61, 8
PIECE_BYTES = 1 << 20


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
    return java_snappy(*zeros(size))


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
