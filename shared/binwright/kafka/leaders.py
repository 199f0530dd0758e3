"""Requests to the leaders of partitions: which broker gets which, and what a late one delays."""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from binwright.kafka.client import NO_LEADER, ClusterClient
from binwright.protocol.errors import BrokerUnavailable, ExternalError, TopicMissing

T = TypeVar("T")

GATHER_S = 0.005
RETRY_S = 0.1

Leaders = Mapping[str, Mapping[int, int]]
"""Topic -> partition -> broker, or `NO_LEADER`."""

_Asked = tuple[str, int, int]  # topic, partition, when


def by_leader(
    leaders: Leaders, partitions: Iterable[tuple[str, int]] | None = None
) -> Mapping[int, Mapping[str, Sequence[int]]]:
    """Return broker -> topic -> numbers of the partitions that it leads.

    Args:
        leaders: Of each partition.
        partitions: Those to return; None: all. One without a leader is left out.
    """
    if partitions is None:
        partitions = ((topic, number) for topic, numbers in leaders.items() for number in numbers)
    led: defaultdict[int, defaultdict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for topic, number in partitions:
        if (broker := leaders[topic].get(number, NO_LEADER)) != NO_LEADER:
            led[broker][topic].append(number)
    return led


class PendingReplies(Generic[T]):
    """At most one pending request for each broker, of brokers that are asked again and again.

    A broker that does not reply in time delays one round by at most `broker_timeout_s`: until it
    has replied, it is not asked again, and later rounds do not wait for it.
    """

    def __init__(self, broker_timeout_s: float) -> None:
        """Wait for replies up to `broker_timeout_s` seconds."""
        self._broker_timeout_s = broker_timeout_s
        self._tasks: dict[int, asyncio.Task[T]] = {}

    async def round(self, requests: Mapping[int, Callable[[], Coroutine[Any, Any, T]]]) -> None:
        """Ask brokers, and wait for those that were not late before; requests must not raise."""
        late = self.late()
        for broker, ask in requests.items():
            # A reply that has come since the last round is too old to be of use.
            if broker not in late:
                self._tasks[broker] = asyncio.create_task(ask())
        asked = [self._tasks[broker] for broker in requests if broker not in late]
        if asked:
            await asyncio.wait(asked, timeout=self._broker_timeout_s)

    def take(self) -> dict[int, T]:
        """Return the replies that have come, by broker, each once."""
        done = sorted(self._tasks.keys() - self.late())
        return {broker: self._tasks.pop(broker).result() for broker in done}

    def late(self) -> frozenset[int]:
        """Return the brokers that have not replied yet."""
        return frozenset(broker for broker, task in self._tasks.items() if not task.done())

    async def close(self) -> None:
        """End what is pending."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        self._tasks.clear()


class LogOffsets:
    """First and end offsets; concurrent look-ups share one request per broker.

    The controllers of a thousand groups look up each second.
    """

    def __init__(self, cluster: ClusterClient, patience_s: float) -> None:
        self._cluster, self._patience_s = cluster, patience_s
        self._leaders: dict[str, Mapping[int, int]] = {}
        self._asked: dict[_Asked, asyncio.Future[int]] = {}
        self._asking: set[asyncio.Task[None]] = set()

    async def look_up(self, topic: str, partition: int, when: int) -> int:
        """Return the `EARLIEST` or `LATEST` offset, as of a moment after this call.

        With a time, ms since 1970, as `when`: the offset of the first record of that time or later,
        -1 if there is none.

        Raises:
            BrokerUnavailable: No broker answers in time, or describing the topic is not permitted.
            TopicMissing: There is no such partition.
        """
        asked = topic, partition, when
        if asked not in self._asked:
            self._asked[asked] = asyncio.get_running_loop().create_future()
            if len(self._asked) == 1:
                task = asyncio.create_task(self._ask())
                self._asking.add(task)
                task.add_done_callback(self._asking.discard)
        return await asyncio.shield(self._asked[asked])

    async def _ask(self) -> None:
        """Look up all that was requested up to now."""
        await asyncio.sleep(GATHER_S)
        asked, self._asked = self._asked, {}
        try:
            async with asyncio.timeout(self._patience_s):
                while open_ := [each for each, future in asked.items() if not future.done()]:
                    if not await self._answer(open_, asked):
                        await asyncio.sleep(RETRY_S)  # a leader is being elected
        except TimeoutError:
            fault: ExternalError = BrokerUnavailable("look up offsets: no answer in time")
        except ExternalError as exc:
            fault = exc
        else:
            return
        for future in asked.values():
            _fail(future, fault)

    async def _answer(self, open_: list[_Asked], asked: dict[_Asked, asyncio.Future[int]]) -> bool:
        """Ask the leaders; return whether every look-up has a result or an error."""
        unknown = {topic for topic, _, _ in open_ if topic not in self._leaders}
        metadata = await self._cluster.topics(unknown)
        self._leaders.update({topic: metadata.leaders.get(topic, {}) for topic in unknown})
        of_time: defaultdict[int, list[tuple[str, int]]] = defaultdict(list)
        for topic, partition, when in open_:
            if topic in unknown and partition not in self._leaders[topic]:
                missing = _missing(topic, partition, metadata.errors.get(topic))
                _fail(asked[topic, partition, when], missing)
            else:
                of_time[when].append((topic, partition))

        async def ask(leader: int, when: int, led: Mapping[str, Sequence[int]]) -> None:
            with contextlib.suppress(BrokerUnavailable):  # another one may lead by now
                answers = await self._cluster.offsets(leader, led, when)
                for (topic, partition), offset in answers.items():
                    asked[topic, partition, when].set_result(offset)

        await asyncio.gather(
            *(
                ask(leader, when, led)
                for when, partitions in of_time.items()
                for leader, led in by_leader(self._leaders, partitions).items()
            )
        )
        left = [each for each in open_ if not asked[each].done()]
        for topic, _, _ in left:
            self._leaders.pop(topic, None)
        return not left


def _missing(topic: str, partition: int, refused: str | None) -> ExternalError:
    if refused:
        return BrokerUnavailable(f"Kafka does not describe topic {topic}: {refused}")
    return TopicMissing(f"there is no partition {topic}-{partition}")


def _fail(future: asyncio.Future[int], fault: ExternalError) -> None:
    if not future.done():
        future.set_exception(fault)
        future.exception()  # marks it as retrieved: the caller may have been cancelled
