"""Measures how long producers wait: a small topic with a leader on each broker of a plan."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Self

from aiokafka import AIOKafkaProducer
from aiokafka.errors import (
    KafkaError,
    NoError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
    for_code,
)
from aiokafka.protocol.admin import CreateTopicsRequest, DeleteTopicsRequest

from binwright.balancer.ports import Probe, Replicas
from binwright.kafka.client import NO_LEADER, ClusterClient, client_options, stop_client
from binwright.protocol.errors import BrokerUnavailable
from binwright.protocol.log_events import LogEvent
from binwright.protocol.model import TopicPartition
from binwright.protocol.rights import PROBE
from binwright.runtime.clock import loop_s
from binwright.runtime.logs import log
from binwright.runtime.settings.kafka import KafkaSettings

PROBE_LEFT = LogEvent.warning(
    "probe.left",
    "The topic with which `brokers apply` measures how long producers wait could not be removed; "
    "the next run removes it.",
)

TOPIC = PROBE
REPLICAS = 3
LONGEST_S = 5.0
"""A record that is not confirmed by then counts as that late."""
RECORD = bytes(100)
CONFIG = {"retention.ms": "600000", "segment.bytes": "1048576", "min.insync.replicas": "1"}
READY_S = 30.0
POLL_S = 0.1


class ProducerProbe:
    """Implements the port `Probe`; an async context manager that removes its topic at the end.

    Partition i is led by broker i of those given, and replicated to the next ones, so that a record
    waits for the disks and for the replication of all of them. A topic that a killed run left is
    made again.
    """

    def __init__(self, kafka: KafkaSettings, brokers: Sequence[int]) -> None:
        """Probe these brokers, at least one."""
        self._kafka, self._brokers = kafka, tuple(brokers)
        self._cluster = ClusterClient(kafka)
        self._producer = AIOKafkaProducer(
            **{**client_options(kafka), "request_timeout_ms": round(LONGEST_S * 1000)},
            acks="all",
        )

    async def __aenter__(self) -> Self:
        """Make the topic.

        Raises:
            BrokerUnavailable: Kafka refuses it, or does not answer.
        """
        try:
            await self._make()
            await self._producer.start()
        except BaseException:
            await self._leave()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        """Remove the topic."""
        await self._leave()

    async def _leave(self) -> None:
        await stop_client(self._producer)
        try:
            await self._remove()
        except BrokerUnavailable as exc:
            log(PROBE_LEFT, topic=TOPIC, reason=str(exc))
        await self._cluster.close()

    async def _make(self) -> None:
        await self._remove()
        try:
            async with asyncio.timeout(READY_S):
                while (error := await self._create()) is TopicAlreadyExistsError:  # noqa: ASYNC110
                    await asyncio.sleep(POLL_S)  # the old one is being deleted
                if error is not NoError:
                    raise BrokerUnavailable(
                        f"Kafka does not create {TOPIC}: {error.__name__}. Grant CREATE, DELETE "
                        "and WRITE on it, or do without (--no-probe)."
                    )
                while not await self._is_led():  # noqa: ASYNC110 - only asking tells
                    await asyncio.sleep(POLL_S)
        except TimeoutError as exc:
            raise BrokerUnavailable(f"{TOPIC} was not ready within {READY_S:g} s") from exc

    async def _create(self) -> type[KafkaError]:
        count = min(REPLICAS, len(self._brokers))
        ring = self._brokers * 2
        assigned = [(i, list(ring[i : i + count])) for i in range(len(self._brokers))]
        topic = (TOPIC, -1, -1, assigned, list(CONFIG.items()))
        request = CreateTopicsRequest([topic], self._timeout_ms, validate_only=False)
        answer = await self._cluster.send_to_controller(request)
        error: type[KafkaError] = for_code(answer.topic_errors[0][1])
        return error

    async def _is_led(self) -> bool:
        led = (await self._cluster.leaders(TOPIC)).values()
        return len(led) == len(self._brokers) and NO_LEADER not in led

    async def _remove(self) -> None:
        if await self._cluster.leaders(TOPIC):
            request = DeleteTopicsRequest([TOPIC], self._timeout_ms)
            answer = await self._cluster.send_to_controller(request)
            error = for_code(answer.topic_error_codes[0][1])
            if error not in (NoError, UnknownTopicOrPartitionError):
                raise BrokerUnavailable(f"Kafka does not remove {TOPIC}: {error.__name__}")

    @property
    def _timeout_ms(self) -> int:
        return round(self._kafka.request_timeout_s * 1000)

    async def measure(self) -> float:
        """See `Probe`; brokers that do not confirm count as `LONGEST_S`."""
        began = loop_s()
        with suppress(TimeoutError, KafkaError):
            async with asyncio.timeout(LONGEST_S):
                sent = (self._confirmed(i) for i in range(len(self._brokers)))
                await asyncio.gather(*sent)
            return loop_s() - began
        return LONGEST_S

    async def _confirmed(self, partition: int) -> None:
        await self._producer.send_and_wait(TOPIC, RECORD, partition=partition)


@asynccontextmanager
async def producer_probe(
    kafka: KafkaSettings, targets: Mapping[TopicPartition, Replicas], *, wanted: bool
) -> AsyncIterator[Probe | None]:
    """Give a probe of the brokers of a plan; None if none is wanted or there are no brokers."""
    brokers = sorted({broker for replicas in targets.values() for broker in replicas})
    if not (wanted and brokers):
        yield None
        return
    async with ProducerProbe(kafka, brokers) as probe:
        yield probe
