"""Why a partition is where it is."""

from binwright.cli.terminal import count, data_size
from binwright.look.explain.answers import (
    Explanation,
    GroupFacts,
    Line,
    held,
    pause,
    pins_of,
    plan_name,
    some,
)
from binwright.look.explain.zones import nearer, partition_zones
from binwright.look.plan_history import PastPlan
from binwright.look.status import ConsumerStatus
from binwright.protocol.model import TopicPartition


def explain_partition(group: GroupFacts, partition: TopicPartition) -> Explanation:
    """Say why a partition is where it is."""
    view, rate = group.view, group.view.rates.get(partition, 0.0)
    reader = group.readers.get(partition)
    lag = view.partition_lag(partition)
    behind = f"{count(lag, 'record')} of it have not landed"
    past = view.history.last_of.get(partition)
    lines = []
    if reader is None:
        lines.append(Line("is", f"it gets {data_size(rate)}/s, and nobody reads it; {behind}"))
        lines += [Line("why", text) for text in _why_unread(group, partition)]
    else:
        limit = group.limit(reader.slot)
        load, most = data_size(reader.load), data_size(limit)
        lines.append(
            Line(
                "is",
                f"it gets {data_size(rate)}/s; consumer {reader.slot} reads it, which gets "
                f"{load}/s in all and sustains {most}/s; {behind}",
            )
        )
        lines += [Line("is", text) for text in _above_limit(group, partition, rate, limit)]
    lines += [Line("is", text) for text in partition_zones(group, partition, reader)]
    lines.append(Line("why", _where_from(group, past, partition)))
    if reader is not None:
        lines += [Line("otherwise", text) for text in nearer(group, partition, reader)]
        lines += [Line("otherwise", text) for text in _elsewhere(group, partition, reader)]
    lines += pins_of(group, partition) + held(group)
    if reader is not None and group.limits is not None:
        lines.append(Line("change", _next_move(group, reader)))
    return Explanation(str(partition), tuple(lines))


def _above_limit(
    group: GroupFacts, partition: TopicPartition, rate: float, limit: float
) -> list[str]:
    """Say how a partition is staged that gets more than one consumer sustains."""
    if split := next((s for s in group.status.splits if s.partition == partition), None):
        staged = some(f"{share.slot} ({count(share.rows, 'row')})" for share in split.shares)
        text = (
            f"a consumer sustains {data_size(limit)}/s, so it is split: consumer "
            f"{split.shares[0].slot} hands out parts, and announces what these consumers have "
            f"staged: {staged}"
        )
        return [text]
    if rate > limit > 0:
        text = (
            f"it gets more than a consumer sustains ({data_size(limit)}/s), and falls behind "
            "alone; with controller.split several consumers would stage it"
        )
        return [text]
    return []


def _next_move(group: GroupFacts, reader: ConsumerStatus) -> str:
    left = group.limit(reader.slot) - reader.need
    if left < 0:
        return f"it may move with the next plan: consumer {reader.slot} gets more than it sustains"
    return (
        f"it may move when consumer {reader.slot} gets {data_size(left)}/s more, when a consumer "
        f"can be saved, or when consumer {reader.slot} ends"
    )


def _why_unread(group: GroupFacts, partition: TopicPartition) -> list[str]:
    for move in group.status.moves:
        if move.partition == partition:
            return [f"consumer {move.new} is to read it, by the last plan; now {move.phase}"]
    return ["no plan gives it to a consumer that lives"]


def _where_from(group: GroupFacts, past: PastPlan | None, partition: TopicPartition) -> str:
    if past is None:
        first = group.view.history.first_ms
        if first is None:
            return "the topic has no plan"
        return f"no plan that the topic still has moved it: the oldest was {group.since(first)}"
    old, new = past.moves[partition]
    origin = "which had no reader" if old is None else f"from consumer {old}"
    reasons = "; ".join(past.reasons)
    return f"{plan_name(group, past)}, gave it to consumer {new}, {origin}: {reasons}"


def _elsewhere(group: GroupFacts, partition: TopicPartition, reader: ConsumerStatus) -> list[str]:
    need = group.needs[partition]
    others = [each for each in group.live if each.slot != reader.slot and each.state == "ready"]
    fitting = [each for each in others if group.room(each) >= need]
    if fitting:
        most = sorted(fitting, key=group.room, reverse=True)
        named = some(f"{each.slot} ({data_size(group.room(each))}/s)" for each in most)
        texts = [f"by a plan's measure these consumers have room for it: {named}"]
    else:
        texts = ["no other consumer has room for it by a plan's measure: one more would start"]
    total = sum(group.needs.values())
    share = need / total if total else 0.0
    cost = f"a move is {share:.1%} of the group's bytes, with a pause of {pause(group)}"
    return [*texts, cost]
