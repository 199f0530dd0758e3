"""Three brokers made of frames: they answer what a monitor asks, in Kafka's own bytes.

`python -m bench.fake_cluster PARTITIONS TOPICS`: prints its bootstrap servers, then serves
until it is ended. What they keep grows by itself; produced records are thrown away.
"""

import asyncio
import struct
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

BROKERS = 3
HOST = "127.0.0.1"
METRICS = "binwright.metrics"
RECORDS_PER_S, RECORD_BYTES = 50, 300
VERSIONS = {0: (3, 3), 2: (1, 1), 3: (4, 4), 18: (0, 0), 22: (0, 0), 35: (1, 1)}


class Frame(NamedTuple):
    """What there is to know of a request, and where its body begins."""

    data: bytes
    at: int


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def array(items: list[bytes]) -> bytes:
    return struct.pack(">i", len(items)) + b"".join(items)


def read_text(data: bytes, at: int) -> tuple[bytes, int]:
    (length,) = struct.unpack_from(">h", data, at)
    return data[at + 2 : at + 2 + length], at + 2 + length


class Cluster:
    """All brokers; a partition is led by its number modulo theirs."""

    def __init__(self, partitions: int, topics: int) -> None:
        each = partitions // topics
        self.topics = {f"load-{n:03d}": each for n in range(topics)} | {METRICS: 1}
        self.ports: list[int] = []
        self.begin = time.monotonic()
        self.produced = 0
        self.answers: dict[int, Callable[[Frame], bytes]] = {
            0: self.produce,
            2: self.offsets,
            3: self.metadata,
            18: self.versions,
            22: self.producer_id,
            35: self.log_dirs,
        }
        self._metadata = b""

    def written(self) -> int:
        return int((time.monotonic() - self.begin) * RECORDS_PER_S)

    def versions(self, _: Frame) -> bytes:
        rows = [struct.pack(">hhh", key, *both) for key, both in VERSIONS.items()]
        return struct.pack(">h", 0) + array(rows)

    def metadata(self, frame: Frame) -> bytes:
        (count,) = struct.unpack_from(">i", frame.data, frame.at)
        if count == 0:
            return self.cluster([])
        if count == 1:
            name, _ = read_text(frame.data, frame.at + 4)
            return self.cluster([self.topic(name.decode())])
        if not self._metadata:
            self._metadata = self.cluster([self.topic(name) for name in self.topics])
        return self._metadata

    def cluster(self, topics: list[bytes]) -> bytes:
        brokers = [
            struct.pack(">i", n) + text(HOST) + struct.pack(">ih", port, -1)
            for n, port in enumerate(self.ports)
        ]
        return (
            struct.pack(">i", 0) + array(brokers) + text("x") + struct.pack(">i", 0) + array(topics)
        )

    def topic(self, name: str) -> bytes:
        rows = [
            struct.pack(">hiii3ii3i", 0, p, p % BROKERS, 3, 0, 1, 2, 3, 0, 1, 2)
            for p in range(self.topics[name])
        ]
        return struct.pack(">h", 0) + text(name) + b"\0" + array(rows)

    def offsets(self, frame: Frame) -> bytes:
        data, at, written = frame.data, frame.at + 8, self.written()
        (count,) = struct.unpack_from(">i", data, at - 4)
        topics = []
        for _ in range(count):
            name, at = read_text(data, at)
            (rows,) = struct.unpack_from(">i", data, at)
            wanted = struct.iter_unpack(">iq", data[at + 4 : at + 4 + 12 * rows])
            at += 4 + 12 * rows
            found = [struct.pack(">ihqq", p, 0, -1, written if t == -1 else 0) for p, t in wanted]
            topics.append(struct.pack(">h", len(name)) + name + array(found))
        return array(topics)

    def log_dirs(self, frame: Frame) -> bytes:
        data, at, size = frame.data, frame.at + 4, self.written() * RECORD_BYTES
        (count,) = struct.unpack_from(">i", data, frame.at)
        topics = []
        for _ in range(count):
            name, at = read_text(data, at)
            (rows,) = struct.unpack_from(">i", data, at)
            wanted = struct.unpack_from(f">{rows}i", data, at + 4)
            at += 4 + 4 * rows
            found = [struct.pack(">iqqB", p, size, 0, 0) for p in wanted]
            topics.append(struct.pack(">h", len(name)) + name + array(found))
        directory = struct.pack(">h", 0) + text("/data") + array(topics)
        return struct.pack(">i", 0) + array([directory])

    def producer_id(self, _: Frame) -> bytes:
        return struct.pack(">ihqh", 0, 0, 7, 0)

    def produce(self, _: Frame) -> bytes:
        self.produced += 1
        row = struct.pack(">ihqq", 0, 0, self.produced, -1)
        return array([text(METRICS) + array([row])]) + struct.pack(">i", 0)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                (length,) = struct.unpack(">i", await reader.readexactly(4))
                data = await reader.readexactly(length)
                key, _, number = struct.unpack_from(">hhi", data)
                _, at = read_text(data, 8)
                answer = struct.pack(">i", number) + self.answers[key](Frame(data, at))
                writer.write(struct.pack(">i", len(answer)) + answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


async def main() -> None:
    partitions, topics = map(int, sys.argv[1:3])
    cluster = Cluster(partitions, topics)
    servers = [
        await asyncio.start_server(cluster.serve, HOST, 0, limit=8 << 20) for _ in range(BROKERS)
    ]
    cluster.ports = [server.sockets[0].getsockname()[1] for server in servers]
    sys.stdout.write(",".join(f"{HOST}:{port}" for port in cluster.ports) + "\n")
    sys.stdout.flush()
    await asyncio.gather(*(server.serve_forever() for server in servers))


if __name__ == "__main__":
    asyncio.run(main())
