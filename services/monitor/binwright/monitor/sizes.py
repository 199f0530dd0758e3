"""The `Logs` of a Kafka cluster: what every partition holds, asked of its leader."""

import asyncio
import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Self

import structlog

from binwright.core.errors import BrokerUnavailable
from binwright.core.ports import LogSample
from binwright.core.selection import Fitting, Selection
from binwright.monitor.batches import Key, Scales
from binwright.monitor.log_dirs import DescribeLogDirs, is_refused, sizes
from binwright.shell.broker import EARLIEST, LATEST, NOBODY, Cluster, Topics, Unsupported
from binwright.shell.settings import KafkaSettings

log = structlog.get_logger()

LIST_S = 5.0
"""How often topics that fit a pattern are looked for: a large cluster's list of topics is long."""

Partitions = Mapping[str, Collection[int]]
Samples = Mapping[Key, LogSample]

NO_SIZES = (
    "this user needs the right DESCRIBE on the CLUSTER. Until it has it, rates are estimated: "
    "records/s x bytes per record of batches looked at now and then (needs READ on the topics)"
)


class KafkaLogs:
    """Sizes and offsets of partitions; see `Logs`. An async context manager.

    Each pass begins with who leads what, so that new, moved and vanished partitions show in the
    same pass. Then every leader is asked at once: for its end offsets, right after them for its
    sizes, and for its start offsets. What is missing is logged when it begins and when it ends.
    """

    def __init__(
        self, kafka: KafkaSettings, *, answer_s: float = 2.0, sizes_per_pass: int = 20_000
    ) -> None:
        """Wait `answer_s` for brokers in a pass; ask for so many sizes, of more in turns.

        The partitions of a broker that is late are None in that pass and until it has answered;
        the others' passes do not wait for it again.
        """
        self._answer_s = min(answer_s, kafka.request_timeout_s)
        self._sizes_per_pass = sizes_per_pass
        self._cluster = Cluster(kafka, answer_s=self._answer_s)
        self._asked: dict[int, asyncio.Task[Samples]] = {}  # by broker
        self._scales = Scales(self._cluster, self._tell)
        self._passes = 0
        self._fitting = Fitting()
        self._listed: tuple[re.Pattern[str], ...] = ()  # by which patterns, the last time
        self._list_at = 0.0
        self._told: defaultdict[str, dict[str, str]] = defaultdict(dict)

    async def __aenter__(self) -> Self:
        """Connect; raise `BrokerUnavailable`, saying what to check."""
        await self._cluster.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Let go of connections."""
        for task in self._asked.values():
            task.cancel()
        await asyncio.gather(*self._asked.values(), return_exceptions=True)
        await self._cluster.close()

    async def sample(
        self, wanted: Selection, weigh: Mapping[str, Collection[int]]
    ) -> Mapping[str, Mapping[int, LogSample | None]]:
        """Return every partition of each topic wanted; see `Logs.sample`.

        A size is None where its broker did not tell it, or where it is not its turn.
        """
        found = await self._found(wanted)
        self._passes += 1
        samples: dict[tuple[str, int], LogSample] = {}
        for answer in await self._answers(_by_leader(found), _urgent(weigh)):
            samples.update(answer)
        return {
            topic: {partition: samples.get((topic, partition)) for partition in leaders}
            for topic, leaders in found.leaders.items()
        } | {t: {} for t in wanted.topics if t not in found.leaders and t not in found.refused}

    async def _found(self, wanted: Selection) -> Topics:
        """Look up the topics that are named, and from time to time those that fit."""
        now = asyncio.get_running_loop().time()
        if not wanted.patterns or (wanted.patterns == self._listed and now < self._list_at):
            found = await self._cluster.topics(wanted.topics)
        else:
            everything = await self._cluster.topics(None)
            # A topic that we may not see is not in the list; asked by name, Kafka tells why.
            named = await self._cluster.topics(wanted.topics - everything.leaders.keys())
            fitting = self._fitting.among(wanted, everything.leaders) - everything.internal
            leaders = {
                topic: partitions
                for topic, partitions in everything.leaders.items()
                if topic in wanted.topics or topic in fitting
            }
            found = Topics({**leaders, **named.leaders}, named.refused)
            self._listed, self._list_at = wanted.patterns, now + LIST_S
        for topic in wanted.topics:
            why = found.refused.get(topic, "there is no such topic")
            self._tell("topic.missing", topic, None if found.leaders.get(topic) else why)
        return found

    async def _answers(self, led: Mapping[int, Partitions], weigh: Sequence[Key]) -> list[Samples]:
        """Ask every leader that owes no answer, and return the answers that came in time."""
        idle = [broker for broker in led if broker not in self._asked]
        for broker in idle:
            self._asked[broker] = asyncio.create_task(self._ask(broker, led[broker], weigh))
        if idle:
            await asyncio.wait([self._asked[b] for b in idle], timeout=self._answer_s)
        done = [broker for broker, task in self._asked.items() if task.done()]
        for broker in self._asked.keys() - done:
            self._tell("broker.late", broker, f"no answer within {self._answer_s:g} s")
        return [self._asked.pop(broker).result() for broker in done]

    async def _ask(self, broker: int, partitions: Partitions, weigh: Sequence[Key]) -> Samples:
        loop = asyncio.get_running_loop()
        asked = loop.time()
        try:
            async with asyncio.timeout(2 * self._answer_s):  # to connect, and to answer
                ends, (held, at), starts = await asyncio.gather(
                    self._cluster.offsets(broker, partitions, LATEST),
                    self._sizes(broker, self._turn(partitions)),
                    self._cluster.offsets(broker, partitions, EARLIEST),
                )
                weights = await self._scales.weigh(broker, weigh, ends)
        except (BrokerUnavailable, TimeoutError) as exc:
            self._tell("broker.late", broker, str(exc) or "no answer in time")
            return {}
        self._tell("broker.late", broker, None)
        at = (asked + at) / 2  # it was at some moment in between
        return {
            key: LogSample(broker, min(starts[key], end), end, held.get(key), at, weights.get(key))
            for key, end in ends.items()
            if key in starts
        }

    def _turn(self, partitions: Partitions) -> Partitions:
        """Return those partitions whose sizes are asked in this pass: of many every nth."""
        turns = -(-sum(map(len, partitions.values())) // self._sizes_per_pass)
        if turns <= 1:
            return partitions
        now = self._passes % turns
        return {t: [p for p in numbers if p % turns == now] for t, numbers in partitions.items()}

    async def _sizes(
        self, broker: int, partitions: Partitions
    ) -> tuple[Mapping[tuple[str, int], int], float]:
        """Return the bytes of each partition, and when they were told."""
        held: Mapping[tuple[str, int], int] = {}
        trouble = None
        try:
            answer = await self._cluster.ask(broker, DescribeLogDirs(partitions))
        except Unsupported as exc:
            trouble = str(exc)
        else:
            trouble = NO_SIZES if is_refused(answer) else None
            held = sizes(answer)
        self._tell("sizes.untold", broker, trouble)
        return held, asyncio.get_running_loop().time()

    def _tell(self, event: str, about: object, reason: str | None) -> None:
        """Log `event` when it begins and when it ends (its reason is None)."""
        told = self._told[event]
        if reason is None:
            if told.pop(str(about), None):
                log.info("trouble.ended", trouble=event, about=about)
        elif str(about) not in told:
            told[str(about)] = reason
            log.warning(event, about=about, reason=reason)


def _urgent(weigh: Mapping[str, Collection[int]]) -> Sequence[Key]:
    """Return what should be weighed, each topic's most urgent first."""
    ranked = sorted((rank, t, p) for t, some in weigh.items() for rank, p in enumerate(some))
    return [(topic, partition) for _, topic, partition in ranked]


def _by_leader(found: Topics) -> Mapping[int, Partitions]:
    led: defaultdict[int, defaultdict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for topic, leaders in found.leaders.items():
        for partition, broker in leaders.items():
            if broker != NOBODY:
                led[broker][topic].append(partition)
    return led
