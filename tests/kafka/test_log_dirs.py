"""DescribeLogDirs in bytes, compared with Kafka's protocol documentation."""

import struct
from io import BytesIO
from types import SimpleNamespace
from typing import Any

import pytest

from binwright.kafka.log_dirs import (
    DescribeLogDirs,
    dead_directories,
    disk_bytes,
    is_refused,
    sizes,
)

CLUSTER_AUTHORIZATION_FAILED = 31


def prepared_request(newest: int = 4, broker: tuple[int, int] = (1, 5)) -> Any:
    return DescribeLogDirs({"a": [0, 1]}, newest).prepare({35: broker})


def test_version_1_is_what_kafkas_own_codec_writes() -> None:
    assert prepared_request(1).encode().hex() == "000000010001610000000200000000" + "00000001"


@pytest.mark.parametrize("version", [2, 3, 4])
def test_later_versions_are_compact(version: int) -> None:
    request = prepared_request(version)
    assert request.FLEXIBLE_VERSION
    assert version == request.API_VERSION
    assert request.encode().hex() == "02" + "0261" + "03" + "00000000" + "00000001" + "0000"


@pytest.mark.parametrize(("broker", "agreed"), [((0, 1), 1), ((0, 2), 2), ((1, 4), 4), ((1, 9), 4)])
def test_the_newest_common_version_is_used(broker: tuple[int, int], agreed: int) -> None:
    assert agreed == prepared_request(broker=broker).API_VERSION


def decoded_response(
    version: int, rows: list[tuple[int, int, bool]], error: int = 0, dirs: int = 1
) -> Any:
    """Decode a response about topic `a`, encoded by hand from Kafka's documentation."""
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
    decoded = prepared_request(version).RESPONSE_TYPE.decode(read)
    assert not read.read()  # all bytes are decoded
    return decoded


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_sizes_are_read_and_replicas_being_moved_are_not_counted(version: int) -> None:
    found = decoded_response(version, [(0, 123, False), (1, 5 * 2**40, False), (1, 7, True)])
    assert sizes(found) == {("a", 0): 123, ("a", 1): 5 * 2**40}
    assert not is_refused(found)


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_a_missing_permission_is_detected_in_every_version(version: int) -> None:
    assert is_refused(decoded_response(version, [], error=CLUSTER_AUTHORIZATION_FAILED, dirs=0))


def with_disks(*disks: tuple[int, int, int]) -> Any:
    """Return a response of version 4 with directories of (error, total, usable)."""
    response = decoded_response(4, [(0, 1, False)])
    (directory,) = response.log_dirs
    response.log_dirs = [
        (error, *directory[1:-3], total, usable, {}) for error, total, usable in disks
    ]
    return response


def test_directories_of_one_disk_count_once() -> None:
    assert disk_bytes(with_disks((0, 100, 40), (0, 100, 40), (0, 100, 30))) == (200, 70)


def test_a_directory_that_failed_does_not_count() -> None:
    assert disk_bytes(with_disks((0, 100, 40), (56, -1, -1))) == (100, 40)


def test_older_brokers_return_no_disks() -> None:
    assert disk_bytes(decoded_response(3, [(0, 1, False)])) == (None, None)


def test_directories_that_cannot_be_read_are_dead() -> None:
    """Kafka's error 56: they are listed without partitions."""
    seen = SimpleNamespace(log_dirs=[(56, "/data/b", []), (0, "/data/a", []), (56, "/a", [])])
    assert dead_directories(seen) == ("/a", "/data/b")
    assert dead_directories(SimpleNamespace(log_dirs=None)) == ()
