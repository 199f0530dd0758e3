"""Topics whose subjects get a new version every few seconds, while records of all versions come."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from random import Random
from urllib.parse import urlsplit

import structlog
from tests.chaos.evolving_schemas import FAULTS, Kind, Shape, first_shape, spoiled
from tests.chaos.proxy import Proxy, proxy
from tests.integration.registry.server import RegistryServer, run_registry

from binwright.protocol.errors import EmbeddedError
from binwright.protocol.model import TopicPartition

KINDS: Mapping[str, Kind] = {"orders": "AVRO", "clicks": "JSON"}
"""Topic -> the language of its schemas."""
VERSION_S = 5.0  # from one version of a subject to the next, about
RETRY_S = 0.5
RECORD_BYTES = 2_000  # about
BAD, OLD = 0.04, 0.4  # shares of the records: bad ones, and those of older versions
RECENT = 6  # versions that older records are of, one in ten of all there ever were
ONLY_BAD_S, EVERY_S = 5, 30  # for so many seconds of each so many a topic has bad records alone

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a subject, as it was registered."""

    shape: Shape
    number: int  # the schema's id


@dataclass(slots=True)
class EvolvingTopics:
    """The topics, their versions, and the registry that knows them.

    The registry keeps its schemas in memory. So whoever restarts it registers all of them anew,
    in the same order: they get the same ids. Meanwhile nobody reaches it.
    """

    registry: RegistryServer
    line: Proxy  # between the services and the registry
    drawn: Random
    versions: dict[str, list[Version]] = field(default_factory=dict)
    _registered: list[tuple[str, Version]] = field(default_factory=list)
    _registering: asyncio.Lock = field(default_factory=asyncio.Lock)
    _records: int = 0

    @property
    def url(self) -> str:
        """The registry's address, as the services see it."""
        return f"http://127.0.0.1:{self.line.port}{urlsplit(self.registry.url).path}"

    @property
    def record_bytes(self) -> int:
        """How large records are, about."""
        return RECORD_BYTES

    @property
    def tables(self) -> list[dict[str, object]]:
        """The settings' entries of the tables."""
        return [
            {"topics": [topic], "format": kind.lower(), "widen": kind == "AVRO"}
            for topic, kind in KINDS.items()
        ]

    async def evolve(self, done: asyncio.Event) -> None:
        """Register versions until it is `done`; one that fails is tried again."""
        while not done.is_set():
            for topic in KINDS:
                shape = self.versions[topic][-1].shape
                new = shape.next(self.drawn, len(self.versions[topic]))
                while not await self._registered_now(topic, new):
                    if done.is_set():
                        return
                    await asyncio.sleep(RETRY_S)  # the registry is away
                await asyncio.sleep(self.drawn.uniform(0.5, 1.5) * VERSION_S / len(KINDS))

    async def begin(self) -> None:
        """Register the first version of each subject."""
        for topic, kind in KINDS.items():
            if not await self._registered_now(topic, first_shape(kind)):
                raise EmbeddedError("the registry does not take the first schemas")

    async def restart(self, down_s: float = 0.0) -> None:
        """Kill the registry and start it, with all that it knew."""
        await self.registry.kill()
        await asyncio.sleep(down_s)
        async with self._registering:
            self.line.cut(None)
            try:
                await self.registry.start()
                for topic, version in self._registered:
                    if await self._register(topic, version.shape) != version.number:
                        raise EmbeddedError(f"{topic}: a schema has got another id than before")
            finally:
                self.line.heal(None, reset=True)

    def record(self, partition: TopicPartition, now_ms: int) -> tuple[bytes, bytes | None]:
        """Return key and value of the next record; in the thread of the load."""
        number, self._records = self._records, self._records + 1
        drawn = Random(number)
        known = self.versions[partition.topic]
        version = known[-1]
        if drawn.random() < OLD:
            version = drawn.choice(known if drawn.random() < 0.25 else known[-RECENT:])
        note = drawn.randbytes(RECORD_BYTES // 2 - 100).hex()
        value = version.shape.written(version.shape.value(drawn, note), version.number)
        bad = now_ms // 1000 % EVERY_S < ONLY_BAD_S
        if not bad and drawn.random() >= BAD:
            return b"%d" % number, value
        return b"%d" % number, spoiled(value, drawn.choice(FAULTS[: 3 if bad else 4]))

    async def _registered_now(self, topic: str, shape: Shape) -> bool:
        async with self._registering:
            try:
                number = await self._register(topic, shape)
            except (OSError, HTTPException) as exc:  # it is being killed, or away
                _log.debug("schema.not_registered", topic=topic, reason=str(exc))
                return False
            version = Version(shape, number)
            self._registered.append((topic, version))
            self.versions.setdefault(topic, []).append(version)
            return True

    async def _register(self, topic: str, shape: Shape) -> int:
        return await asyncio.to_thread(
            self.registry.register, f"{topic}-value", shape.schema, kind=shape.kind
        )


@asynccontextmanager
async def run_evolving_topics(directory: Path, seed: int) -> AsyncIterator[EvolvingTopics]:
    """Run a registry with the first version of each subject."""
    async with (
        run_registry(directory) as registry,
        proxy(int(urlsplit(registry.url).port or 0)) as line,
    ):
        topics = EvolvingTopics(registry, line, Random(seed))
        await topics.begin()
        yield topics
