"""First and end offsets of partitions; concurrent look-ups share one request per broker."""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Mapping

from binwright.kafka.client import NO_LEADER, ClusterClient
from binwright.protocol.errors import BrokerUnavailable, ExternalError, TopicMissing

GATHER_S = 0.005
RETRY_S = 0.1

_Asked = tuple[str, int, int]  # topic, partition, when


class LogOffsets:
    """Look-ups of a bus, batched: the controllers of a thousand groups look up each second."""

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
        found = await self._cluster.topics(unknown)
        self._leaders.update({topic: found.leaders.get(topic, {}) for topic in unknown})
        by_leader: defaultdict[tuple[int, int], defaultdict[str, list[int]]]
        by_leader = defaultdict(lambda: defaultdict(list))
        for topic, partition, when in open_:
            leader = self._leaders[topic].get(partition, None if topic in unknown else NO_LEADER)
            if leader is None:
                missing = _missing(topic, partition, found.errors.get(topic))
                _fail(asked[topic, partition, when], missing)
            elif leader != NO_LEADER:
                by_leader[leader, when][topic].append(partition)

        async def ask(leader: int, when: int, of: Mapping[str, list[int]]) -> None:
            with contextlib.suppress(BrokerUnavailable):  # another one may lead by now
                answers = await self._cluster.offsets(leader, of, when)
                for (topic, partition), offset in answers.items():
                    asked[topic, partition, when].set_result(offset)

        await asyncio.gather(*(ask(leader, when, of) for (leader, when), of in by_leader.items()))
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
