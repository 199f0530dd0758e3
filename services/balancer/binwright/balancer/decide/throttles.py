"""Limits on copying between brokers, as Kafka's configurations hold them, with a mark of ours.

Kafka limits what leaders send to, and followers fetch for, the replicas that a topic's lists name,
to a rate that brokers have. The rate is set once, as the default of all brokers: so it is there for
brokers that start meanwhile, and can be removed while a broker is down. (Kafka's own tool sets it
on each broker.) The lists name what is under way, so that what a killed run left behind is found
in the cluster alone.

Marks: a rate of ours ends in `RATE_MARK`; a list of ours begins with `LIST_MARK`, which is a
partition and a broker that no cluster has. What has no mark was set by another tool and stays.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from binwright.balancer.ports import ConfigChanges, ConfigResource, Configs, Replicas
from binwright.protocol.model import TopicPartition

LEADER_RATE, FOLLOWER_RATE = RATES = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
)
LEADER_LIST, FOLLOWER_LIST = LISTS = (
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
)
NAMES = (*RATES, *LISTS)
RATE_UNIT, RATE_MARK = 1_000, 617
LIST_MARK = "2000000617:2000000617"
ALL_BROKERS = ConfigResource("broker", "")


@dataclass(frozen=True, slots=True)
class Copy:
    """One partition that is copied to other brokers."""

    partition: TopicPartition
    sources: Replicas  # brokers that have it
    added: Replicas  # brokers that copy it


@dataclass(frozen=True, slots=True)
class Throttles:
    """The throttles that a cluster has."""

    ours: Configs = field(default_factory=dict)
    foreign: Configs = field(default_factory=dict)

    @classmethod
    def found(cls, configs: Configs) -> "Throttles":
        """Sort the values of `NAMES` by who set them."""
        ours: dict[ConfigResource, dict[str, str]] = {}
        foreign: dict[ConfigResource, dict[str, str]] = {}
        for resource, values in sorted(configs.items(), key=lambda item: item[0]):
            for name, value in sorted(values.items()):
                if name in NAMES and value:
                    side = ours if _is_ours(name, value) else foreign
                    side.setdefault(resource, {})[name] = value
        return cls(ours, foreign)

    def partitions(self) -> frozenset[TopicPartition]:
        """Return the partitions that our lists name: what we had under way."""
        return frozenset(
            TopicPartition(resource.name, int(entry.partition(":")[0]))
            for resource, values in self.ours.items()
            for name in LISTS
            for entry in values.get(name, "").split(",")[1:]
        )

    def foreign_topics(self, names: Collection[str]) -> list[str]:
        """Return which of these topics have lists of another tool."""
        return sorted({each.name for each in self.foreign if each.kind == "topic"} & {*names})

    def foreign_brokers(self) -> list[str]:
        """Return which brokers have rates of another tool; "" is the default of all."""
        return sorted(each.name for each in self.foreign if each.kind == "broker")

    def until(self, rate: int | None, copies: Iterable[Copy]) -> ConfigChanges:
        """Return the changes after which these copies are limited to `rate`, and nothing else.

        Args:
            rate: Bytes/s of each broker, in and out; None: unlimited, the lists are set alone.
            copies: What is under way and what is to start; none: all of ours is removed.
        """
        wanted = _wanted(rate, sorted(copies, key=lambda copy: copy.partition))
        resources = sorted({*self.ours, *wanted})
        changes = {
            each: _changed(self.ours.get(each, {}), wanted.get(each, {})) for each in resources
        }
        return {resource: values for resource, values in changes.items() if values}


def marked_rate(rate: int) -> int:
    """Return the rate with our mark, bytes/s: differs by less than 1,000, is never below it."""
    rounded = rate - rate % RATE_UNIT + RATE_MARK
    return rounded if rounded >= rate else rounded + RATE_UNIT


def _is_ours(name: str, value: str) -> bool:
    if name in LISTS:
        return value.split(",", 1)[0] == LIST_MARK
    return value.isascii() and value.isdigit() and int(value) % RATE_UNIT == RATE_MARK


def _wanted(rate: int | None, copies: list[Copy]) -> dict[ConfigResource, dict[str, str]]:
    wanted: dict[ConfigResource, dict[str, str]] = {}
    if copies and rate is not None:
        wanted[ALL_BROKERS] = dict.fromkeys(RATES, str(marked_rate(rate)))
    for topic in dict.fromkeys(copy.partition.topic for copy in copies):
        of_topic = [copy for copy in copies if copy.partition.topic == topic]
        wanted[ConfigResource("topic", topic)] = {
            LEADER_LIST: _list((copy, copy.sources) for copy in of_topic),
            FOLLOWER_LIST: _list((copy, copy.added) for copy in of_topic),
        }
    return wanted


def _list(replicas: Iterable[tuple[Copy, tuple[int, ...]]]) -> str:
    return ",".join(_entries(replicas))


def _entries(replicas: Iterable[tuple[Copy, tuple[int, ...]]]) -> Iterator[str]:
    yield LIST_MARK
    for copy, brokers in replicas:
        for broker in brokers:
            yield f"{copy.partition.partition}:{broker}"


def _changed(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str | None]:
    names = sorted({*old, *new})
    return {name: new.get(name) for name in names if old.get(name) != new.get(name)}
