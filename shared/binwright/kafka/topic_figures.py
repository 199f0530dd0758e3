"""How large topics are, and how fast they grow: by two looks at their leaders."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from binwright.kafka.client import EARLIEST, LATEST, ClusterClient, UnsupportedVersion
from binwright.kafka.leaders import Leaders, by_leader
from binwright.kafka.log_dirs import DescribeLogDirs, is_refused, sizes

Place = tuple[str, int]  # topic, partition


@dataclass(frozen=True, slots=True)
class TopicFigures:
    """What is known of one topic."""

    partitions: int
    bounds: Mapping[int, tuple[int, int]]  # of partitions whose leader answered: first offset, end
    size: int | None = None  # bytes at the leaders; None: this user may not know
    records_per_s: float | None = None  # None: not measured
    bytes_per_s: float | None = None

    @property
    def offsets(self) -> int:
        """Return how many offsets the topic keeps: of records, at most."""
        return sum(end - start for start, end in self.bounds.values())


@dataclass(frozen=True, slots=True)
class _Look:
    at_s: float
    starts: Mapping[Place, int]
    ends: Mapping[Place, int]
    sizes: Mapping[Place, int]


async def topic_figures(
    cluster: ClusterClient, leaders: Leaders, measure_s: float
) -> dict[str, TopicFigures]:
    """Return the figures of these topics.

    Args:
        cluster: Where.
        leaders: Of the partitions of each topic.
        measure_s: Between two looks, of which the rates are the difference; 0: no rates.

    Raises:
        BrokerUnavailable: A leader does not answer.
    """
    first = last = await _look(cluster, leaders)
    if measure_s:
        await asyncio.sleep(measure_s)
        last = await _look(cluster, leaders)
    elapsed_s = last.at_s - first.at_s
    return {
        topic: _figures(topic, sorted(partitions), first, last, elapsed_s if measure_s else None)
        for topic, partitions in leaders.items()
    }


def _figures(
    topic: str, partitions: Sequence[int], first: _Look, last: _Look, elapsed_s: float | None
) -> TopicFigures:
    known = [p for p in partitions if {(topic, p)} <= last.starts.keys() & last.ends.keys()]
    # Retention may move the start to the end between the two requests.
    bounds = {
        p: (min(last.starts[topic, p], last.ends[topic, p]), last.ends[topic, p]) for p in known
    }
    sized = bool(partitions) and all((topic, p) in last.sizes for p in partitions)
    size = sum(last.sizes[topic, p] for p in partitions) if sized else None
    if elapsed_s is None:
        return TopicFigures(len(partitions), bounds, size)
    return TopicFigures(
        len(partitions),
        bounds,
        size,
        _growth(topic, partitions, first.ends, last.ends) / elapsed_s,
        _growth(topic, partitions, first.sizes, last.sizes) / elapsed_s if sized else None,
    )


def _growth(
    topic: str, partitions: Sequence[int], before: Mapping[Place, int], after: Mapping[Place, int]
) -> int:
    """Return by how much partitions have grown; one that retention has cut has not."""
    places = [(topic, p) for p in partitions if (topic, p) in before and (topic, p) in after]
    return sum(max(after[place] - before[place], 0) for place in places)


async def _look(cluster: ClusterClient, leaders: Leaders) -> _Look:
    replies = await asyncio.gather(
        *(_ask(cluster, broker, led) for broker, led in by_leader(leaders).items())
    )
    starts, ends, log_sizes = dict[Place, int](), dict[Place, int](), dict[Place, int]()
    for reply in replies:
        for all_of_it, part in zip((starts, ends, log_sizes), reply, strict=True):
            all_of_it.update(part)
    return _Look(asyncio.get_running_loop().time(), starts, ends, log_sizes)


async def _ask(
    cluster: ClusterClient, broker: int, led: Mapping[str, Sequence[int]]
) -> tuple[dict[Place, int], dict[Place, int], dict[Place, int]]:
    starts, ends, log_sizes = await asyncio.gather(
        cluster.offsets(broker, led, EARLIEST),
        cluster.offsets(broker, led, LATEST),
        _sizes(cluster, broker, led),
    )
    return starts, ends, log_sizes


async def _sizes(
    cluster: ClusterClient, broker: int, led: Mapping[str, Sequence[int]]
) -> dict[Place, int]:
    """Return the bytes of partitions; none, if the broker does not tell this user."""
    try:
        reply = await cluster.send_request(broker, DescribeLogDirs(led))
    except UnsupportedVersion:
        return {}
    return {} if is_refused(reply) else sizes(reply)
