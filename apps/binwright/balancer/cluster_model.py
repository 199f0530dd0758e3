"""From what Kafka reports, and what a person describes, to the model that plans are made for.

Where no capacity of a resource is known, each broker gets the same: room enough for the load of all
brokers, so that it limits nothing and is balanced all the same.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from math import inf

from binwright.balancer.decide.loads import LoadLimits
from binwright.balancer.decide.model import (
    UNLIMITED,
    Amounts,
    Broker,
    BrokerId,
    BrokerState,
    Cluster,
    CpuCosts,
    Partition,
    Topic,
)
from binwright.balancer.decide.rate_history import RateHistory, busy_rate, kept_rate
from binwright.balancer.decide.safety import dead_directories
from binwright.balancer.description import ClusterDescription
from binwright.balancer.ports import ClusterState, ConfigResource, Configs, Disk
from binwright.protocol.errors import PlacementError
from binwright.protocol.model import BytesPerSecond, Rates
from binwright.protocol.rights import PROBE

RETENTION_MS, RETENTION_BYTES, POLICY = "retention.ms", "retention.bytes", "cleanup.policy"
TOPIC_CONFIGS = (RETENTION_MS, RETENTION_BYTES, POLICY)
SPACIOUS = 2.0
"""A capacity that limits nothing, in units of the load of all brokers."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What Kafka reports of a cluster at one time, and how fast its partitions are written."""

    state: ClusterState
    disks: Mapping[int, Disk]
    configs: Configs  # of topics: `TOPIC_CONFIGS`
    rates: Rates  # now
    unmeasured: int = 0  # partitions whose rate is not known: they count as idle
    history: RateHistory = field(default_factory=RateHistory)  # hour by hour, until now


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What is to be different from the cluster as it is.

    Attributes:
        drained: Brokers that are to hold nothing.
        added: Racks of brokers that are added, with the capacity of all.
        growth: Factor on all rates.
        retention_s: Of topics, instead of theirs.
    """

    drained: Collection[int] = ()
    added: tuple[str | None, ...] = ()
    growth: float = 1.0
    retention_s: Mapping[str, float] = field(default_factory=dict)


def cluster_model(
    seen: Snapshot, wanted: ClusterDescription, changes: WhatIf | None = None
) -> Cluster:
    """Return the cluster to plan for, without the topic of the probe.

    Raises:
        PlacementError: A broker or topic that is named does not exist.
        BalanceError: The parts contradict each other.
    """
    what_if = changes or WhatIf()
    _check_names(seen, wanted, what_if)
    topics = _topics(seen, wanted, what_if)
    partitions = _partitions(seen, wanted, topics)
    nominal = _nominal(topics, partitions, wanted)
    share = wanted.headroom
    cluster = Cluster(
        brokers=tuple(_brokers(seen, wanted, what_if, nominal)),
        topics=topics,
        partitions=tuple(partitions),
        headroom=Amounts(share, share, share, share),
        cpu=CpuCosts(wanted.cpu_s_per_byte_in, wanted.cpu_s_per_byte_out),
    )
    return cluster if what_if.growth == 1 else cluster.grown(what_if.growth)


def check_directories(seen: Snapshot, drained: Collection[int] = ()) -> None:
    """Raise `PlacementError` if a broker that is to keep replicas has lost a log directory."""
    dead = dead_directories(seen.state, seen.disks)
    if reasons := [text for broker, text in dead if broker not in drained]:
        raise PlacementError(
            f"{'; '.join(reasons)}. Repair it and restart the broker, or move what it held to "
            "others: binwright brokers drain"
        )


def _check_names(seen: Snapshot, wanted: ClusterDescription, changes: WhatIf) -> None:
    brokers = {*seen.state.racks, *_named_brokers(seen)}
    named = {
        *changes.drained,
        *wanted.brokers,
        *(broker for pinned in wanted.pinned.values() for broker in pinned),
        *(broker for topic in wanted.topics.values() for broker in topic.excluded_brokers),
    }
    topics = {partition.topic for partition in seen.state.partitions}
    unknown = [
        *(f"broker {broker}" for broker in sorted(named - brokers)),
        *(f"topic {topic}" for topic in sorted({*wanted.topics, *changes.retention_s} - topics)),
        *(f"partition {each}" for each in sorted(wanted.pinned.keys() - _names(seen))),
    ]
    if unknown:
        raise PlacementError(f"the cluster has no {', no '.join(unknown)}")


def _names(seen: Snapshot) -> set[str]:
    return {str(partition) for partition in seen.state.partitions}


def _named_brokers(seen: Snapshot) -> set[int]:
    return {broker for state in seen.state.partitions.values() for broker in state.replicas}


def _partitions(
    seen: Snapshot, wanted: ClusterDescription, topics: Mapping[str, Topic]
) -> list[Partition]:
    partitions = []
    for partition, state in sorted(seen.state.partitions.items()):
        if partition.topic == PROBE:
            continue
        now = seen.rates.get(partition, BytesPerSecond(0.0))
        rates = seen.history.of(partition) or [now]
        rate = busy_rate(rates)
        replicas = seen.state.placed(partition)
        leader = state.leader if state.leader in seen.disks else None
        holders = replicas if leader is None else (leader,)
        sizes = (seen.disks[b].sizes.get(partition, 0) for b in holders if b in seen.disks)
        partitions.append(
            Partition(
                id=partition,
                rate=rate,
                size_bytes=max(sizes, default=0),
                replicas=tuple(map(BrokerId, replicas)),
                read=BytesPerSecond(rate * wanted.topic(partition.topic).readers),
                pinned=frozenset(map(BrokerId, wanted.pinned.get(str(partition), ()))),
                kept_rate=kept_rate(rates, topics[partition.topic].retention_s),
            )
        )
    return partitions


def _topics(seen: Snapshot, wanted: ClusterDescription, changes: WhatIf) -> dict[str, Topic]:
    counts: dict[str, Counter[int]] = {}
    for partition in seen.state.partitions:
        if partition.topic != PROBE:
            replicas = seen.state.placed(partition)
            counts.setdefault(partition.topic, Counter())[len(replicas)] += 1
    topics = {}
    for name, sizes in sorted(counts.items()):
        described = wanted.topic(name)
        config = seen.configs.get(ConfigResource("topic", name), {})
        by_time, by_size = _retention(config)
        topics[name] = Topic(
            name=name,
            # What most of its partitions have; of two as frequent the larger.
            replication=described.replication or max(sizes, key=lambda n: (sizes[n], n)),
            retention_s=changes.retention_s.get(name, described.retention_s or by_time),
            retention_bytes=described.retention_bytes or by_size,
            rack_spread=described.rack_spread,
            reader_racks=frozenset(described.reader_racks),
            group=described.group,
            excluded=described.excluded,
            excluded_brokers=frozenset(map(BrokerId, described.excluded_brokers)),
            compacted="compact" in config.get(POLICY, ""),
        )
    return topics


def _retention(config: Mapping[str, str]) -> tuple[float | None, int | None]:
    """Return how long and how much of a partition is kept; a compacted topic has no limit."""
    if "delete" not in config.get(POLICY, "delete"):
        return None, None
    milliseconds, size = int(config.get(RETENTION_MS, "-1")), int(config.get(RETENTION_BYTES, "-1"))
    return (milliseconds / 1000 if milliseconds >= 0 else None), (size if size >= 0 else None)


def _nominal(
    topics: Mapping[str, Topic], partitions: list[Partition], wanted: ClusterDescription
) -> Amounts:
    """Return a capacity of each resource that limits nothing; `inf` where there is no load."""
    into = sum(each.rate * len(each.replicas) for each in partitions)
    out = sum(each.rate * (len(each.replicas) - 1) + each.read for each in partitions)
    disk = sum(each.disk_bytes(topics[each.id.topic]) * len(each.replicas) for each in partitions)
    cpu = wanted.cpu_s_per_byte_in * into + wanted.cpu_s_per_byte_out * out
    return Amounts(*(SPACIOUS * load if load else inf for load in (disk, into, out, cpu)))


def _brokers(
    seen: Snapshot, wanted: ClusterDescription, changes: WhatIf, nominal: Amounts
) -> list[Broker]:
    alive, named = seen.state.racks, _named_brokers(seen)
    brokers = []
    for broker in sorted({*alive, *named}):
        state: BrokerState = "up" if broker in named else "new"
        if broker not in alive:
            state = "down"
        elif broker in changes.drained:
            state = "draining"
        capacity = _capacity(wanted, broker, _disk_total(seen, broker), nominal)
        brokers.append(Broker(BrokerId(broker), capacity, alive.get(broker), state))
    largest = max((each.id for each in brokers), default=0)
    typical = next((each for each in brokers if each.usable), None)
    for number, rack in enumerate(changes.added, 1):
        capacity = typical.capacity if typical else nominal
        brokers.append(Broker(BrokerId(largest + number), capacity, rack, "new"))
    return brokers


def known_limits(cluster: Cluster, seen: Snapshot, wanted: ClusterDescription) -> LoadLimits:
    """Return what each broker may carry at most; `inf` where its capacity is not known."""
    return {
        broker.id: _known(cluster.room(broker), broker.id, seen, wanted)
        for broker in cluster.brokers
    }


def _known(room: Amounts, broker: int, seen: Snapshot, wanted: ClusterDescription) -> Amounts:
    capacity = _capacity(wanted, broker, _disk_total(seen, broker), UNLIMITED)
    return Amounts(
        *(inf if known == inf else own for known, own in zip(capacity, room, strict=True))
    )


def _disk_total(seen: Snapshot, broker: int) -> int | None:
    disk = seen.disks.get(broker)
    return disk.total_bytes if disk else None


def _capacity(
    wanted: ClusterDescription, broker: int, disk_bytes: int | None, nominal: Amounts
) -> Amounts:
    described = wanted.of_broker(broker)
    return Amounts(
        described.disk_bytes or disk_bytes or nominal.disk,
        described.network_in_bytes_per_s or nominal.network_in,
        described.network_out_bytes_per_s or nominal.network_out,
        described.cpu_cores or nominal.cpu,
    )
