"""Limits on copying between brokers, as Kafka's configurations hold them, with a mark of ours.

Kafka limits what leaders send to, and followers fetch for, the replicas that a topic's lists name,
to a rate that brokers have. The rate is set once, as the default of all brokers: so it is there for
brokers that start meanwhile, and can be removed while a broker is down. (Kafka's own tool sets it
on each broker.) The lists name what is under way, so that what a killed run left behind is found
in the cluster alone.

Marks: a rate of ours ends in `RATE_MARK`; a list of ours begins with `LIST_MARK`, which is a
partition and a broker that no cluster has. What has no mark was set by another tool, or by the
cluster's owner, and stays. A rate of theirs limits what our lists name as well, so that the smaller
one counts: beside a default of theirs, ours is set on each broker if it is smaller; ours hides what
brokers have in their files, so it is never above that. A value that they set on a single broker
counts there.
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
    brokers: tuple[int, ...] = ()  # that are alive

    @classmethod
    def of_configs(cls, configs: Configs, brokers: Iterable[int] = ()) -> "Throttles":
        """Sort the values of `NAMES` by who set them."""
        ours: dict[ConfigResource, dict[str, str]] = {}
        foreign: dict[ConfigResource, dict[str, str]] = {}
        for resource, values in sorted(configs.items(), key=lambda item: item[0]):
            for name, value in sorted(values.items()):
                if name in NAMES and value:
                    is_ours = not resource.is_static and _is_ours(name, value)
                    side = ours if is_ours else foreign
                    side.setdefault(resource, {})[name] = value
        return cls(ours, foreign, tuple(sorted(brokers)))

    def with_lists(self, configs: Configs) -> "Throttles":
        """Return these with lists of topics that were read later."""
        later, topics = Throttles.of_configs(configs), configs.keys()
        return Throttles(
            {**{each: v for each, v in self.ours.items() if each not in topics}, **later.ours},
            {
                **{each: v for each, v in self.foreign.items() if each not in topics},
                **later.foreign,
            },
            self.brokers,
        )

    def listed(self) -> frozenset[str]:
        """Return the topics that have lists of ours."""
        return frozenset(each.name for each in self.ours if each.kind == "topic")

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

    def foreign_limits(self) -> list[str]:
        """Return the rates that are not ours: where they are set, on which brokers, their values.

        They limit nothing without lists, and limit what our lists name.
        """
        groups: dict[tuple[str, str], list[str]] = {}
        for resource, values in self.foreign.items():
            if rates := ", ".join(f"{name} = {values[name]}" for name in RATES if name in values):
                source = "set on brokers" if resource.name else "the default of all brokers"
                source = "in the files of brokers" if resource.is_static else source
                groups.setdefault((source, rates), []).append(resource.name)
        return [
            f"{source} {', '.join(names)}".rstrip() + f": {rates}"
            for (source, rates), names in groups.items()
        ]

    def until(self, rate: int | None, copies: Iterable[Copy]) -> ConfigChanges:
        """Return the changes after which these copies are limited to `rate`, and nothing else.

        Args:
            rate: Bytes/s of each broker, in and out; None: unlimited, the lists are set alone.
            copies: What is under way and what is to start; none: all of ours is removed.
        """
        under_way = sorted(copies, key=lambda copy: copy.partition)
        wanted: dict[ConfigResource, dict[str, str]] = _lists(under_way)
        if under_way and rate is not None:
            for name in RATES:
                for resource, limit in self._limits(name, marked_rate(rate)):
                    wanted.setdefault(resource, {})[name] = str(limit)
        resources = sorted({*self.ours, *wanted})
        changes = {
            each: _changed(self.ours.get(each, {}), wanted.get(each, {})) for each in resources
        }
        return {resource: values for resource, values in changes.items() if values}

    def _limits(self, name: str, limit: int) -> Iterator[tuple[ConfigResource, int]]:
        """Yield where a rate of ours is to be, so that the smaller of ours and theirs counts."""
        theirs = {
            each: int(values[name])
            for each, values in self.foreign.items()
            if each.kind == "broker" and values.get(name, "").isdigit()
        }
        if (default := theirs.get(ALL_BROKERS)) is None:
            static = min((rate for each, rate in theirs.items() if each.is_static), default=limit)
            yield ALL_BROKERS, limit if limit <= static else _marked_below(static)
        elif default > limit:
            for broker in self.brokers:
                if (each := ConfigResource("broker", str(broker))) not in theirs:
                    yield each, limit


def marked_rate(rate: int) -> int:
    """Return the rate with our mark, bytes/s: differs by less than 1,000, is never below it."""
    rounded = rate - rate % RATE_UNIT + RATE_MARK
    return rounded if rounded >= rate else rounded + RATE_UNIT


def _marked_below(rate: int) -> int:
    """Return the largest rate with our mark that is not above a rate, or the smallest there is."""
    rounded = rate - rate % RATE_UNIT + RATE_MARK
    return max(RATE_MARK, rounded if rounded <= rate else rounded - RATE_UNIT)


def _is_ours(name: str, value: str) -> bool:
    if name in LISTS:
        return value.split(",", 1)[0] == LIST_MARK
    return value.isascii() and value.isdigit() and int(value) % RATE_UNIT == RATE_MARK


def _lists(copies: list[Copy]) -> dict[ConfigResource, dict[str, str]]:
    wanted: dict[ConfigResource, dict[str, str]] = {}
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
