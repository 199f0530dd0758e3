"""Inflates the records of a batch into memory of bounded size.

A batch of 1 MB, which every broker takes, can inflate to gigabytes. A decoder that inflates it
whole ends the process, and then each process that takes its partitions over.
"""

import mmap
import zlib
from collections.abc import Callable

import cramjam
from aiokafka.record.default_records import DefaultRecordBatch

PIECE_BYTES = 1 << 20  # of gzip, which tells no size in advance
FIRST_GUESS, NEXT_GUESS = 8, 8  # times the compressed size; times the last guess
SMALLEST_GUESS = 1 << 16
_GZIP = 31  # zlib's number for a gzip header, with the largest window
_XERIAL, _XERIAL_BYTES = b"\x82SNAPPY\x00", 16  # what Java's snappy writes before its blocks
_TOO_SMALL = "whole buffer"  # in the message of a decompressor whose output has no room


class InflatedTooLarge(Exception):
    """The records of a batch take more memory than they may."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"it inflates to more than {limit:,} bytes, the limit of consumer.batch_inflated_bytes"
        )
        self.limit = limit


def inflated(codec: int, compressed: memoryview, limit: int, *, head: bytes = b"") -> memoryview:
    """Return `head` and the inflated bytes behind it.

    Args:
        codec: Kafka's number of the compression.
        compressed: The compressed records.
        limit: How many bytes they may inflate to.
        head: Stands before them, so that they need not be copied behind a header.

    Raises:
        InflatedTooLarge: They inflate to more; no more than about `limit` bytes were used.
        ValueError: They cannot be inflated.
    """
    try:
        return _INFLATE[codec](compressed, limit, head)
    except KeyError:
        raise ValueError(f"unknown compression {codec}") from None
    except (zlib.error, cramjam.DecompressionError) as exc:
        raise ValueError(f"it cannot be inflated: {exc}") from exc


def _gzip(compressed: memoryview, limit: int, head: bytes) -> memoryview:
    out, left = bytearray(head), bytes(compressed)
    while left:
        stream = zlib.decompressobj(_GZIP)
        while not stream.eof:
            piece = stream.decompress(left, PIECE_BYTES)
            if not (piece or stream.unconsumed_tail or stream.eof):
                raise ValueError("it cannot be inflated: its end is missing")
            out += piece
            left = stream.unconsumed_tail
            if len(out) - len(head) > limit:
                raise InflatedTooLarge(limit)
        left = stream.unused_data
    return memoryview(out)


def _snappy(compressed: memoryview, limit: int, head: bytes) -> memoryview:
    """Inflate one block, or Java's sequence of blocks; each tells its size."""
    blocks = [compressed]
    if compressed[: len(_XERIAL)] == _XERIAL:
        blocks, at = [], _XERIAL_BYTES
        while at < len(compressed):
            begin = at + 4
            at = begin + int.from_bytes(compressed[at:begin])
            blocks.append(compressed[begin:at])
    sizes = [cramjam.snappy.decompress_raw_len(block) for block in blocks]
    if sum(sizes) > limit:
        raise InflatedTooLarge(limit)
    out, at = _room(head, sum(sizes)), len(head)
    for block, size in zip(blocks, sizes, strict=True):
        cramjam.snappy.decompress_raw_into(block, out[at : at + size])
        at += size
    return out


def _by_guess(
    decompress_into: Callable[[memoryview, memoryview], int],
) -> Callable[[memoryview, int, bytes], memoryview]:
    """Inflate a format that need not tell its size: into more room as long as there is too little.

    That is several times faster than a decompressor that makes its output grow.
    """

    def inflate(compressed: memoryview, limit: int, head: bytes) -> memoryview:
        room = min(max(FIRST_GUESS * len(compressed), SMALLEST_GUESS), limit)
        while True:
            out = _room(head, room)
            try:
                used = decompress_into(compressed, out[len(head) :])
            except cramjam.DecompressionError as exc:
                if _TOO_SMALL not in str(exc):
                    raise
                if room == limit:
                    raise InflatedTooLarge(limit) from exc
                room = min(NEXT_GUESS * room, limit)
            else:
                decompressed = out[: len(head) + used]
                # The rest of a large room takes no memory, that of a small one does.
                return decompressed if len(out) > PIECE_BYTES else memoryview(bytes(decompressed))

    return inflate


def _room(head: bytes, size: int) -> memoryview:
    """Return memory that begins with `head`; of much of it, what is not used takes none."""
    whole = len(head) + size
    out = memoryview(bytearray(whole) if whole <= PIECE_BYTES else mmap.mmap(-1, whole))
    out[: len(head)] = head
    return out


_INFLATE: dict[int, Callable[[memoryview, int, bytes], memoryview]] = {
    DefaultRecordBatch.CODEC_GZIP: _gzip,
    DefaultRecordBatch.CODEC_SNAPPY: _snappy,
    DefaultRecordBatch.CODEC_LZ4: _by_guess(cramjam.lz4.decompress_into),
    DefaultRecordBatch.CODEC_ZSTD: _by_guess(cramjam.zstd.decompress_into),
}
