"""What is inflated is bounded in every format, and is what was compressed."""

import gzip
import os
import tracemalloc
from collections.abc import Callable

import cramjam
import pytest
from tests.kafka.batches import GZIP, LZ4, SNAPPY, ZSTD, java_snappy

from binwright.kafka.inflating import NEXT_GUESS, SMALLEST_GUESS, InflatedTooLarge, inflated

LIMIT = 4_000_000


FORMATS: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "gzip": (GZIP, gzip.compress),
    "snappy": (SNAPPY, lambda content: bytes(cramjam.snappy.compress_raw(content))),
    "java-snappy": (SNAPPY, java_snappy),
    "lz4": (LZ4, lambda content: bytes(cramjam.lz4.compress(content))),
    "zstd": (ZSTD, lambda content: bytes(cramjam.zstd.compress(content))),
}
each_format = pytest.mark.parametrize(("codec", "compress"), FORMATS.values(), ids=FORMATS)


@each_format
@pytest.mark.parametrize(
    "content",
    [b"", b"a", os.urandom(10_000), bytes(SMALLEST_GUESS), bytes(NEXT_GUESS * SMALLEST_GUESS + 1)],
    ids=["empty", "one", "random", "guessed", "guessed-again"],
)
def test_what_was_compressed_comes_back_behind_the_head(
    codec: int, compress: Callable[[bytes], bytes], content: bytes
) -> None:
    found = inflated(codec, memoryview(compress(content)), LIMIT, head=b"head")
    assert bytes(found) == b"head" + content


@each_format
def test_up_to_the_limit_all_comes_back(codec: int, compress: Callable[[bytes], bytes]) -> None:
    assert len(inflated(codec, memoryview(compress(bytes(LIMIT))), LIMIT)) == LIMIT
    with pytest.raises(InflatedTooLarge, match=r"4,000,000 bytes.*batch_inflated_bytes"):
        inflated(codec, memoryview(compress(bytes(LIMIT + 1))), LIMIT)


@each_format
def test_a_bomb_takes_no_more_memory_than_the_limit(
    codec: int, compress: Callable[[bytes], bytes]
) -> None:
    bomb = memoryview(compress(bytes(40 * LIMIT)))
    tracemalloc.start()
    try:
        with pytest.raises(InflatedTooLarge):
            inflated(codec, bomb, LIMIT)
        assert tracemalloc.get_traced_memory()[1] < 3 * LIMIT
    finally:
        tracemalloc.stop()


@each_format
def test_damaged_content_is_an_error_of_one_kind(
    codec: int, compress: Callable[[bytes], bytes]
) -> None:
    whole = compress(os.urandom(10_000))
    for damaged in (whole[: len(whole) // 2], b"garbage" * 10):
        with pytest.raises(ValueError, match="cannot be inflated"):
            inflated(codec, memoryview(damaged), LIMIT)


def test_gzip_of_several_members_is_bounded_in_all() -> None:
    members = memoryview(gzip.compress(bytes(LIMIT // 2)) * 3)
    assert len(inflated(GZIP, members, LIMIT * 2)) == 3 * LIMIT // 2
    with pytest.raises(InflatedTooLarge):
        inflated(GZIP, members, LIMIT)


@pytest.mark.parametrize(
    ("codec", "compress"), [(LZ4, cramjam.lz4.compress), (ZSTD, cramjam.zstd.compress)]
)
def test_a_small_batch_keeps_no_room_that_it_does_not_use(
    codec: int, compress: Callable[[bytes], bytes]
) -> None:
    """Thousands of them are held at once."""
    out = inflated(codec, memoryview(bytes(compress(b"x" * 1_000))), 1 << 20, head=b"h")
    assert len(bytes(out)) == memoryview(out.obj).nbytes == 1_001


def test_an_unknown_compression_is_named() -> None:
    with pytest.raises(ValueError, match="unknown compression 7"):
        inflated(7, memoryview(b""), LIMIT)
