"""Which bytes cross zones, and what it would cost that they do not."""

from binwright.cli.terminal import data_size
from binwright.look.explain.answers import GroupFacts, some
from binwright.look.status import ConsumerStatus
from binwright.protocol.model import Assignment, TopicPartition


def group_crossing(group: GroupFacts) -> list[str]:
    """Return how much of what the group reads crosses zones; nothing where no zone is known."""
    if not group.zones.of_slot or not any(group.zones.of_partition.values()):
        return []
    crossing, load = group.status.crossing, group.status.load
    share = crossing / load if load else 0.0
    return [f"{data_size(crossing)}/s of that ({share:.0%}) cross zones; {_price(group)}"]


def packed_crossing(group: GroupFacts, target: Assignment) -> str:
    """Return how much would cross zones after another packing, as the end of a sentence."""
    if not group.config.settings.zone_price:
        return ""
    crossing = data_size(group.zones.crossing(group.view.rates, target))
    return f"; {crossing}/s would cross zones, and what no longer crosses pays for moves, too"


def consumer_zone(consumer: ConsumerStatus) -> list[str]:
    """Return where a consumer runs, if that is known, and how much crosses zones to it."""
    if consumer.zone is None:
        return []
    return [f"it runs in zone {consumer.zone}; {data_size(consumer.crossing)}/s cross zones to it"]


def partition_zones(
    group: GroupFacts, partition: TopicPartition, reader: ConsumerStatus | None
) -> list[str]:
    """Return where a partition can be read, if that is known, and whether its bytes cross zones."""
    if not (near := group.zones.of_partition.get(partition)):
        return []
    readable = f"it can be read in zone {' and '.join(sorted(near))}"
    if reader is None or reader.zone is None:
        return [readable]
    crosses = group.zones.crosses(partition, reader.slot)
    do = "cross zones" if crosses else "cross no zone"
    return [f"{readable}; consumer {reader.slot} runs in zone {reader.zone}: its bytes {do}"]


def nearer(group: GroupFacts, partition: TopicPartition, reader: ConsumerStatus) -> list[str]:
    """Return which consumers could read a partition without crossing zones, and at what price."""
    if not group.zones.crosses(partition, reader.slot):
        return []
    need, zones = group.needs[partition], group.zones.of_partition[partition]
    near = [each for each in group.live if each.zone in zones and each.state == "ready"]
    fitting = sorted((each for each in near if group.room(each) >= need), key=group.room)
    if fitting:
        named = some(f"{each.slot} ({data_size(group.room(each))}/s)" for each in fitting[::-1])
        where = f"consumers of its zones have room for it: {named}"
    elif near:
        where = "no consumer of its zones has room for it: others would have to move for it"
    else:
        where = "no consumer runs in its zones"
    return [f"{where}; {_price(group)}"]


def _price(group: GroupFacts) -> str:
    price = group.config.settings.zone_price
    if not price:
        return "plans do not regard that: controller.zone_price is 0"
    if price <= 1:
        return (
            f"controller.zone_price is {price:g}: only what moves anyway is placed by zones, and "
            "nothing moves for that alone"
        )
    return (
        f"controller.zone_price is {price:g}: a byte/s that no longer crosses pays for "
        f"{price:g} bytes/s that move"
    )
