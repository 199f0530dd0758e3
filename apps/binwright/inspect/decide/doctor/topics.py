"""Judges topics: data topics, which must keep records long enough, and the group's own."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from binwright.inspect.decide.doctor.findings import Finding, fault, listed, ok, skipped, warning
from binwright.protocol.metadata_topic import POLICY, UNCLEAN, refusal, weaknesses
from binwright.protocol.ports.kafka import TopicDescription

RETENTION, LARGEST = "retention.ms", "max.message.bytes"
CONFIGS = (POLICY, UNCLEAN, RETENTION, LARGEST)
"""What is looked at."""

SHORTEST_S = 3600.0
"""How long records should be kept at least: an outage may last as long."""
LEAST_MESSAGE = 10_000
"""A control topic must take records of this size, bytes."""


@dataclass(frozen=True, slots=True)
class VisibleTopic:
    """A topic as this user may see it."""

    name: str
    partitions: int  # 0: there is none, or it may not be described
    leaderless: Sequence[int] = ()
    replicas: int = 0  # the fewest of any partition
    permitted: frozenset[str] | None = None  # operations; None: unknown
    hidden: bool = False  # it may exist, and this user may not know
    error: str = ""  # why Kafka does not describe it, where that is no matter of rights
    config: Mapping[str, str] | None = None  # of `CONFIGS`; None: it may not be read

    @property
    def exists(self) -> bool:
        """Whether it is there, as far as this user may see."""
        return self.partitions > 0


def data_topics(
    topics: Sequence[VisibleTopic], patterns: Collection[str], inflated_bytes: int
) -> Iterator[Finding]:
    """Judge the topics that are landed.

    Args:
        topics: Those that are named, and those that match a pattern.
        patterns: Those of the settings.
        inflated_bytes: Batches above it are put aside (`consumer.batch_inflated_bytes`).
    """
    if not topics and patterns:
        yield warning(
            "topics",
            f"no topic matches {', '.join(patterns)}, as far as this user may see",
            "check topic_patterns, and the right to describe such topics; later ones are found",
        )
    elif not topics:
        yield fault(
            "topics", "the settings name no topic", "set topics or topic_patterns: nothing lands"
        )
    unread = []
    for topic in topics:
        findings = [*_data_topic(topic, inflated_bytes)]
        yield from findings
        if topic.exists and topic.config is None:
            unread.append(topic.name)
        if topic.exists and not findings:
            yield ok(_name(topic), f"{topic.partitions} partitions with leaders{_kept(topic)}")
    if unread:
        yield skipped(
            "topic settings",
            f"retention and compaction of {listed(unread)}: this user lacks DescribeConfigs, "
            "which no service needs",
        )


def _data_topic(topic: VisibleTopic, inflated_bytes: int) -> Iterator[Finding]:
    check = _name(topic)
    if unseen := _unseen(topic):
        yield unseen
        return
    if not topic.exists:
        yield fault(check, "there is no such topic", "create it, or check its name in topics")
        return
    if topic.leaderless:
        yield _leaderless(topic)
    config = topic.config or {}
    if "compact" in config.get(POLICY, ""):
        yield warning(
            check,
            f"{POLICY}={config[POLICY]}: records vanish that were replaced before they landed",
            "fine if only the newest record of each key counts; else set it to delete",
        )
    if (kept_s := _kept_s(topic)) is not None and kept_s < SHORTEST_S:
        yield warning(
            check,
            f"{RETENTION}={config[RETENTION]}: after an outage of {_duration(kept_s)} records are "
            "lost",
            f"keep them for {_duration(SHORTEST_S)} at least",
        )
    if (largest := int(config.get(LARGEST) or 0)) > inflated_bytes:
        yield warning(
            check,
            f"{LARGEST}={largest} is more than consumer.batch_inflated_bytes ({inflated_bytes}): "
            "larger batches are put aside in files, not landed",
            "raise consumer.batch_inflated_bytes, and the memory of consumers",
        )


def compacted_topic(topic: VisibleTopic, brokers: int) -> Iterator[Finding]:
    """Judge the group's topic of metadata, or of orders, if it is there; `brokers`: how many."""
    yield from _control_topic(topic)
    if topic.exists and topic.config is not None:
        facts = TopicDescription(topic.config, topic.replicas, brokers)
        if refused := refusal(topic.name, facts):
            yield fault(_name(topic), refused)
        for reason in weaknesses(facts):
            yield warning(_name(topic), reason, "reassign replicas, forbid unclean elections")


def commands_topic(topic: VisibleTopic, slots: int, brokers: int) -> Iterator[Finding]:
    """Judge the group's topic of commands, if there is one.

    Args:
        topic: The topic.
        slots: `controller.max_slots`; each has a partition of its own.
        brokers: How many there are.
    """
    yield from compacted_topic(topic, brokers)
    if topic.exists and topic.partitions < slots and not _may(topic, "Alter"):
        yield warning(
            _name(topic),
            f"{topic.partitions} partitions serve as many consumers, controller.max_slots is "
            f"{slots}, and this user may not add partitions",
            f"add partitions up to {slots}, or grant Alter to the controller",
        )


def landing_topic(topic: VisibleTopic, partitions: int, retention_s: float) -> Iterator[Finding]:
    """Judge the group's landing topic, if there is one.

    Args:
        topic: The topic.
        partitions: How many it has to have.
        retention_s: How long staged files are kept (`staging.retention_s`).
    """
    check = _name(topic)
    yield from _control_topic(topic)
    if not topic.exists:
        return
    if topic.partitions < partitions and not _may(topic, "Alter"):
        yield fault(
            check,
            f"{topic.partitions} partitions, and this user may not add any",
            f"add partitions up to {partitions}",
        )
    if "compact" in (topic.config or {}).get(POLICY, ""):
        yield fault(
            check,
            f"{POLICY}={(topic.config or {})[POLICY]}: announcements of staged files would be lost",
            f"set {POLICY}=delete",
        )
    if (kept_s := _kept_s(topic)) is not None and kept_s < retention_s:
        yield warning(
            check,
            f"{RETENTION} is {_duration(kept_s)}, and staged files are kept for "
            f"{_duration(retention_s)}: files that a stopped table has not landed by then are read "
            "from Kafka again",
            f"set {RETENTION}={round(retention_s * 1000)}",
        )


def other_topic(topic: VisibleTopic) -> Iterator[Finding]:
    """Judge a topic that all groups share, if there is one."""
    yield from _control_topic(topic)


def creations(refused: Mapping[str, str]) -> Iterator[Finding]:
    """Judge topics that Kafka would not create, for other reasons than rights: topic -> why."""
    for topic, why in sorted(refused.items()):
        yield fault(f"topic {topic}", f"cannot be created: {why}", "check kafka.replication_factor")


def _control_topic(topic: VisibleTopic) -> Iterator[Finding]:
    check = _name(topic)
    if unseen := _unseen(topic):
        yield unseen
    elif not topic.exists:
        yield skipped(check, "does not exist yet: the services create it, or you do")
    elif topic.leaderless:
        yield _leaderless(topic)
    largest = (topic.config or {}).get(LARGEST)
    if largest and int(largest) < LEAST_MESSAGE:
        yield fault(
            check, f"{LARGEST}={largest}: it takes no message", f"set {LEAST_MESSAGE} at least"
        )


def _unseen(topic: VisibleTopic) -> Finding | None:
    """Return why nothing can be seen of a topic; None: it can, or there is none."""
    if topic.hidden:
        return skipped(_name(topic), "this user may not know whether it exists: see the rights")
    if topic.error:
        return fault(_name(topic), f"Kafka does not describe it: {topic.error}")
    return None


def _leaderless(topic: VisibleTopic) -> Finding:
    return fault(
        _name(topic),
        f"no leader of partitions {listed([str(number) for number in topic.leaderless])}",
        "start the brokers that hold their replicas",
    )


def _may(topic: VisibleTopic, operation: str) -> bool:
    """Whether this is permitted, or unknown."""
    return topic.permitted is None or operation in topic.permitted


def _name(topic: VisibleTopic) -> str:
    return f"topic {topic.name}"


def _kept_s(topic: VisibleTopic) -> float | None:
    """Return how long records are kept; None: for ever, or unknown."""
    config = topic.config or {}
    if "delete" not in config.get(POLICY, "delete") or RETENTION not in config:
        return None
    kept_ms = int(config[RETENTION])
    return None if kept_ms < 0 else kept_ms / 1000


def _kept(topic: VisibleTopic) -> str:
    kept_s = _kept_s(topic)
    return "" if kept_s is None else f", records are kept for {_duration(kept_s)}"


def _duration(seconds: float) -> str:
    for name, unit in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * unit or seconds == unit:
            return f"{seconds / unit:.3g} {name if seconds > unit else name[:-1]}"
    return f"{seconds:.3g} seconds"
