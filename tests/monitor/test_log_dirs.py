"""DescribeLogDirs as bytes, against Kafka's own description of them."""

import struct
from io import BytesIO
from typing import Any

import pytest

from binwright.monitor.log_dirs import DescribeLogDirs, is_refused, sizes

NOT_ALLOWED = 31


def said(newest: int = 4, broker: tuple[int, int] = (1, 5)) -> Any:
    return DescribeLogDirs({"a": [0, 1]}, newest).prepare({35: broker})


def test_version_1_is_what_kafkas_own_codec_writes() -> None:
    assert said(1).encode().hex() == "000000010001610000000200000000" + "00000001"


@pytest.mark.parametrize("version", [2, 3, 4])
def test_later_versions_are_compact(version: int) -> None:
    question = said(version)
    assert question.FLEXIBLE_VERSION
    assert version == question.API_VERSION
    assert question.encode().hex() == "02" + "0261" + "03" + "00000000" + "00000001" + "0000"


@pytest.mark.parametrize(("broker", "agreed"), [((0, 1), 1), ((0, 2), 2), ((1, 4), 4), ((1, 9), 4)])
def test_the_newest_version_that_both_know_is_spoken(broker: tuple[int, int], agreed: int) -> None:
    assert agreed == said(broker=broker).API_VERSION


def answer(version: int, rows: list[tuple[int, int, bool]], error: int = 0, dirs: int = 1) -> Any:
    """Decode an answer about topic `a`, written by hand as Kafka's documentation says."""
    compact = version >= 2

    def many(items: list[bytes]) -> bytes:
        count = bytes([len(items) + 1]) if compact else struct.pack(">i", len(items))
        return count + b"".join(items)

    def text(value: bytes) -> bytes:
        size = bytes([len(value) + 1]) if compact else struct.pack(">h", len(value))
        return size + value

    tags = b"\0" if compact else b""
    parts = [struct.pack(">iqq?", p, size, 0, future) + tags for p, size, future in rows]
    topic = text(b"a") + many(parts) + tags
    disk = struct.pack(">qq", 10**9, 10**8) if version >= 4 else b""
    directory = struct.pack(">h", 0) + text(b"/data") + many([topic]) + disk + tags
    top = struct.pack(">h", error) if version >= 3 else b""
    whole = struct.pack(">i", 0) + top + many([directory] * dirs) + tags
    read = BytesIO(whole)
    decoded = said(version).RESPONSE_TYPE.decode(read)
    assert not read.read()  # all of it was understood
    return decoded


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_sizes_are_read_and_copies_on_their_way_are_not_counted(version: int) -> None:
    found = answer(version, [(0, 123, False), (1, 5 * 2**40, False), (1, 7, True)])
    assert sizes(found) == {("a", 0): 123, ("a", 1): 5 * 2**40}
    assert not is_refused(found)


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_a_missing_right_is_seen_in_every_version(version: int) -> None:
    assert is_refused(answer(version, [], error=NOT_ALLOWED, dirs=0))
