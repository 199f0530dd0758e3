"""Why there are so many consumers, and why this one."""

from binwright.cli.terminal import count, data_size
from binwright.group.plans import Rejected, backlog, packing_request, plan, triggers
from binwright.look.explain.answers import (
    Explanation,
    GroupFacts,
    Line,
    cordon_of,
    duration,
    held,
    pause,
    plan_name,
    some,
)
from binwright.look.explain.zones import consumer_zone, group_crossing, packed_crossing
from binwright.look.savings_text import savings_text
from binwright.look.status import ConsumerStatus
from binwright.packing.catalogue import algorithm
from binwright.protocol.errors import PackingError
from binwright.protocol.model import Slot
from binwright.protocol.orders import signed


def explain_group(group: GroupFacts) -> Explanation:
    """Say why the group has as many consumers as it has."""
    status = group.status
    lines = [Line("is", _size(group))]
    lines += [Line("is", text) for text in group_crossing(group)]
    if status.unread:
        lines.append(Line("is", f"without a reader: {some(map(str, status.unread))}"))
    lines += [Line("why", text) for text in _last_plan(group)]
    lines += [Line("why", signed(order)) for order in group.adopted]
    if group.limits is not None and group.needs:
        lines += [Line("otherwise", text) for text in _other_sizes(group)]
    if group.view.savings:
        texts = savings_text(group.view.savings, group.now_ms, status.adoptable)
        lines += [Line("otherwise", text) for text in texts]
    lines += held(group)
    lines += [Line("change", text) for text in _next_change(group)]
    return Explanation(f"group {status.group}", tuple(lines))


def _size(group: GroupFacts) -> str:
    status = group.status
    text = (
        f"{data_size(status.load)}/s in {count(status.partitions, 'partition')}, read by "
        f"{count(group.reading, 'consumer')}"
    )
    if group.limits is None:
        return f"{text}; no controller has said what a consumer sustains"
    if (needed := sum(group.needs.values())) > status.load:
        text += f"; with what backlogs count for {data_size(needed)}/s"
    how = "as measured" if status.limits_measured else "as set"
    return (
        f"{text}; a consumer sustains {data_size(group.limits.default)}/s ({how}), and a plan "
        f"gives it up to {data_size(group.capacity)}/s"
    )


def _last_plan(group: GroupFacts) -> list[str]:
    past = group.view.history.plan()
    if past is None:
        return ["its topic has no plan: none was needed yet, or no controller has led"]
    return [f"{plan_name(group, past)}: {'; '.join(past.reasons)}"]


def _other_sizes(group: GroupFacts) -> list[str]:
    needed = group.fewest()
    if needed < group.reading:
        sizes = [f"the load alone would fit {count(needed, 'consumer')} at best"]
    else:
        sizes = [f"the load needs {count(needed, 'consumer')} at least: one less cannot read it"]
    return [*sizes, _packed_now(group)]


def _packed_now(group: GroupFacts) -> str:
    """Say what the controller would make of a packing now: the planner is asked."""
    request = packing_request(group.state)
    name = request.packing or group.config.settings.packing
    try:
        target = algorithm(name)(request.load)
    except PackingError as exc:
        return f"the packing {name} cannot be asked: {exc}"
    planned = plan(group.state, target, triggers(group.state))
    if isinstance(planned, Rejected):
        return f"packed now ({name}), all would stay where it is: {planned.reason}"
    after = len(set(planned.target.values()))
    pauses = f"; each move with a pause of {pause(group)}" if planned.changes.moves else ""
    crossing = packed_crossing(group, planned.target)
    return (
        f"packed now ({name}), {count(after, 'consumer')} would do: "
        f"{'; '.join(planned.reasons)}{crossing}{pauses}"
    )


def _next_change(group: GroupFacts) -> list[str]:
    if group.limits is None:
        return []
    changes = [f"a plan is due: {reason}" for reason in triggers(group.state)]
    loads = group.state.loads()
    loaded = [each for each in group.live if len(each.partitions) > 1 and group.limit(each.slot)]
    if not loaded:
        return changes
    shares = {each.slot: loads.get(each.slot, 0.0) / group.limit(each.slot) for each in loaded}
    slot = max(shares, key=lambda slot: shares[slot])
    load, limit = loads.get(slot, 0.0), group.limit(slot)
    changes.append(
        f"more consumers come when one gets more than it sustains: nearest is consumer {slot}, "
        f"{data_size(load)}/s of {data_size(limit)}/s ({load / limit:.0%})"
        f"{backlog(group.state, slot)}"
    )
    if group.reading > max(1, group.config.settings.min_slots):
        room = (group.reading - 1) * group.capacity
        changes.append(f"one goes at the earliest when the load is below {data_size(room)}/s")
    return changes


def explain_consumer(group: GroupFacts, slot: Slot) -> Explanation:
    """Say why there is a consumer, and whether it could be spared."""
    consumer = next((each for each in group.status.consumers if each.slot == slot), None)
    about = f"consumer {slot}"
    if consumer is None:
        return Explanation(about, (Line("is", "no such consumer reports"),))
    limit = group.limit(slot)
    share = f" ({consumer.need / limit:.0%} of what it sustains)" if limit else ""
    tables = f"; it writes the tables {some(consumer.tables)}" if consumer.tables else ""
    lines = [
        Line(
            "is",
            f"{consumer.state}; it reads {count(len(consumer.partitions), 'partition')}, which get "
            f"{data_size(consumer.load)}/s{share}{tables}",
        )
    ]
    lines += [Line("is", text) for text in consumer_zone(consumer)]
    if consumer.state == "silent":
        text = f"its last report was {duration(consumer.silent_s)} ago"
        lines.append(Line("is", text))
    plans = [p for p in group.view.history.plans if slot in {new for _, new in p.moves.values()}]
    if plans:
        reasons = "; ".join(plans[-1].reasons)
        text = f"{plan_name(group, plans[-1])}, gave it partitions last: {reasons}"
    else:
        text = "no plan that the topic still has gave it partitions"
    lines.append(Line("why", text))
    lines += [Line("otherwise", text) for text in _without(group, consumer)]
    lines += cordon_of(group, slot) + held(group)
    return Explanation(about, tuple(lines))


def _without(group: GroupFacts, consumer: ConsumerStatus) -> list[str]:
    if group.limits is None or not consumer.partitions:
        return []
    room = sum(group.room(each) for each in group.live if each.slot != consumer.slot)
    needed = group.fewest()
    load = data_size(consumer.need)
    if room < consumer.need or needed >= group.reading:
        spared = (
            f"it cannot be spared: it gets {load}/s, the others have room for "
            f"{data_size(room)}/s by a plan's measure, and the load needs "
            f"{count(needed, 'consumer')} at least"
        )
        return [spared]
    total = sum(group.needs.values())
    share = consumer.need / total if total else 0.0
    spared = (
        f"the others have room for {data_size(room)}/s by a plan's measure: without it "
        f"{share:.1%} of the bytes would move at least, to save one of {group.reading} consumers"
    )
    return [spared]
