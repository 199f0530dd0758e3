"""The `Logs` of a Kafka cluster: what every partition holds, asked of its leader."""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Self

import structlog

from binwright.core.errors import BrokerUnavailable
from binwright.core.ports import LogSample
from binwright.monitor.log_dirs import DescribeLogDirs, is_refused, sizes
from binwright.shell.broker import EARLIEST, LATEST, NOBODY, Cluster, Topics, Unsupported
from binwright.shell.settings import KafkaSettings

log = structlog.get_logger()

Partitions = Mapping[str, Collection[int]]


class KafkaLogs:
    """Sizes and offsets of partitions; see `Logs`. An async context manager.

    Each pass begins with who leads what, so that new, moved and vanished partitions show in the
    same pass. Then every leader is asked at once: for its end offsets, right after them for its
    sizes, and for its start offsets. What is missing is logged when it begins and when it ends.
    """

    def __init__(self, kafka: KafkaSettings, *, answer_s: float = 5.0) -> None:
        """Take a broker that does not answer within `answer_s` for late.

        Its partitions are None in that pass. A pass lasts at most `answer_s` for each broker that
        hangs while it is asked who leads what, and twice that for all leaders together.
        """
        self._answer_s = min(answer_s, kafka.request_timeout_s)
        self._cluster = Cluster(kafka, answer_s=self._answer_s)
        self._told: defaultdict[str, dict[str, str]] = defaultdict(dict)

    async def __aenter__(self) -> Self:
        """Connect; raise `BrokerUnavailable`, saying what to check."""
        await self._cluster.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Let go of connections."""
        await self._cluster.close()

    async def sample(self, topics: Collection[str]) -> Mapping[str, Mapping[int, LogSample | None]]:
        """Return every partition of each topic that exists; see `Logs.sample`.

        A size is None where its broker did not tell it.
        """
        found = await self._cluster.topics(topics)
        self._tell_missing(topics, found)
        led = _by_leader(found)
        answers = await asyncio.gather(*(self._asked(broker, led[broker]) for broker in led))
        samples = {key: sample for answer in answers for key, sample in answer.items()}
        return {
            topic: {partition: samples.get((topic, partition)) for partition in leaders}
            for topic, leaders in found.leaders.items()
            if leaders
        }

    async def _asked(
        self, broker: int, partitions: Partitions
    ) -> Mapping[tuple[str, int], LogSample]:
        try:
            async with asyncio.timeout(2 * self._answer_s):  # to connect, and to answer
                ends, held, starts = await asyncio.gather(
                    self._cluster.offsets(broker, partitions, LATEST),
                    self._sizes(broker, partitions),
                    self._cluster.offsets(broker, partitions, EARLIEST),
                )
        except (BrokerUnavailable, TimeoutError) as exc:
            self._tell("broker.late", broker, str(exc) or "no answer in time")
            return {}
        self._tell("broker.late", broker, None)
        return {
            key: LogSample(broker, min(starts[key], end), end, held.get(key))
            for key, end in ends.items()
            if key in starts
        }

    async def _sizes(self, broker: int, partitions: Partitions) -> Mapping[tuple[str, int], int]:
        try:
            answer = await self._cluster.ask(broker, DescribeLogDirs(partitions))
        except Unsupported as exc:
            self._tell("sizes.untold", broker, str(exc))
            return {}
        if is_refused(answer):
            right = "this user needs the right DESCRIBE on the CLUSTER; without it no rate is known"
            self._tell("sizes.untold", broker, right)
            return {}
        self._tell("sizes.untold", broker, None)
        return sizes(answer)

    def _tell_missing(self, topics: Collection[str], found: Topics) -> None:
        for topic in topics:
            why = found.refused.get(topic, "there is no such topic")
            self._tell("topic.missing", topic, None if found.leaders.get(topic) else why)

    def _tell(self, event: str, about: object, reason: str | None) -> None:
        """Log `event` when it begins and when it ends (its reason is None)."""
        told = self._told[event]
        if reason is None:
            if told.pop(str(about), None):
                log.info("trouble.ended", trouble=event, about=about)
        elif str(about) not in told:
            told[str(about)] = reason
            log.warning(event, about=about, reason=reason)


def _by_leader(found: Topics) -> Mapping[int, Partitions]:
    led: defaultdict[int, defaultdict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for topic, leaders in found.leaders.items():
        for partition, broker in leaders.items():
            if broker != NOBODY:
                led[broker][topic].append(partition)
    return led
