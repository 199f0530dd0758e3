"""Plans: what triggers one, what becomes of a packing, and why it is rejected."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from binwright.group.budgets import affordable, count_moves, moves_left
from binwright.group.group import Group
from binwright.group.zones import near_moves, zones
from binwright.packing.adjust import ensure_min_slots, limit_slots, worth_moving
from binwright.packing.inputs import Load, slot_capacities
from binwright.packing.placement import is_overfull, most_consumers, open_load, place
from binwright.packing.score import moved_partitions, rscore
from binwright.protocol.metadata import Planned, Proposed
from binwright.protocol.model import Assignment, BytesPerSecond, Rates, Slot, TopicPartition

MIN_SAVING = 0.5
"""Share of consumers that a plan must save per share of bytes that it moves, unless triggered."""


@dataclass(frozen=True, slots=True)
class Pack:
    """What a packing is asked."""

    load: Load
    packing: str | None = None  # its name, as an order has it; None: the settings' own


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The difference of two assignments; the mappings are sorted."""

    moves: Mapping[TopicPartition, tuple[Slot, Slot]]  # -> (from, to)
    first_starts: Mapping[TopicPartition, Slot]  # without a reader -> to
    departures: Mapping[TopicPartition, Slot]  # not in the target -> from

    def __bool__(self) -> bool:
        """Return whether anything changes."""
        return bool(self.moves or self.first_starts or self.departures)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Changes to carry out."""

    target: Assignment
    changes: Difference
    rscore: float  # bytes/s moved, in units of capacity (eq. 11)
    reasons: tuple[str, ...]  # the triggers if any, then savings and costs
    over_budget: tuple[str, ...] = ()  # what is not in it for want of a budget


@dataclass(frozen=True, slots=True)
class Rejected:
    """Why the assignment stays as it is, as text with numbers."""

    reason: str
    over_budget: tuple[str, ...] = ()  # what the budget does not allow


def packing_request(group: Group) -> Pack:
    """Return the request to pack the partitions that no rule places.

    A rate above every limit counts as the largest.
    """
    limit = group.config.limits.largest
    rates: Rates = {p: BytesPerSecond(min(group.need(p), limit)) for p in group.existing()}
    variance = group.load.volatility.mean_square
    load = Load(rates, group.capacities, group.members.assignment(), variance, zones(group))
    rules = group.people.controls.rules
    return Pack(open_load(load, rules) if rules else load, group.people.controls.packing)


def plan(group: Group, packing: Assignment, triggered_by: tuple[str, ...]) -> Plan | Rejected:
    """Return what becomes of a packing's result, or why it is rejected.

    It is kept within people's rules and the group's `max_slots` and `min_slots`, idle consumers are
    used before new ones, what then changes must be worth its moves, and within the budget.

    Args:
        group: The group.
        packing: The owners according to a packing of what no rule places.
        triggered_by: What makes a plan necessary (an overload, a death), as text.
    """
    target = _ruled(group, packing) if group.people.controls.rules else _limited(group, packing)
    if isinstance(target, Rejected):
        return target
    result = evaluate(group, reuse_idle_consumers(group, target), triggered_by)
    return result if isinstance(result, Rejected) else _within_budget(group, result, triggered_by)


def _limited(group: Group, packing: Assignment) -> Assignment | Rejected:
    """Return the packing within `max_slots` and `min_slots`."""
    settings, current = group.settings, group.members.assignment()
    # What a rule placed when the packing began stays where it is.
    known = group.owners()
    packing = packing if known.keys() <= packing.keys() else {**known, **packing}
    rates, capacities = group.needs(packing), slot_capacities(group.capacities)
    target = limit_slots(packing, rates, capacities, settings.max_slots)
    if target != packing and not worth_moving(rates, capacities, current, target):
        return Rejected(f"all {settings.max_slots} consumers are full")
    return ensure_min_slots(target, rates, capacities, current, settings.min_slots)


def _ruled(group: Group, packing: Assignment) -> Assignment | Rejected:
    """Return the packing within people's rules, too."""
    settings, rules, current = group.settings, group.people.controls.rules, group.owners()
    rates = group.needs(group.existing())
    load = Load(rates, group.capacities, current)
    capacities = load.capacities
    packed = {p: slot for p, slot in {**current, **packing}.items() if p in rates}
    target = place(packed, load, rules, settings.max_slots)
    full = is_overfull(target, rates, capacities)
    if full and not order_triggers(group) and not worth_moving(rates, capacities, current, target):
        return Rejected("all consumers that people's orders leave are full")
    minimum = rules.consumers or settings.min_slots
    return ensure_min_slots(
        target,
        rates,
        capacities,
        current,
        minimum,
        rules=rules,
        max_slots=settings.max_slots,
    )


def _within_budget(group: Group, full: Plan, triggered_by: tuple[str, ...]) -> Plan | Rejected:
    """Return the part of a plan that the budget of an hour allows."""
    target = affordable(group, full.target, full.changes.moves, triggered=bool(triggered_by))
    left_out = sum(target[p] != new for p, (_, new) in full.changes.moves.items())
    if not left_out:
        return full
    moves = counted(len(full.changes.moves), "move")
    text = (
        f"{left_out} of {moves} wait: {moves_left(group)} are left of the budget of "
        f"{group.settings.moves_per_hour} per hour (controller.moves_per_hour)"
    )
    return replace(evaluate(group, target, triggered_by), over_budget=(text,))


def reuse_idle_consumers(group: Group, target: Assignment) -> dict[TopicPartition, Slot]:
    """Return `target` with slots that would start replaced by idle ones of the same limit.

    Ready ones come first. An idle slot lives, owns and helps with no partition, and is not
    draining.
    """
    members, rules = group.members, group.people.controls.rules
    wanted, owning, living = frozenset(target.values()), members.partitions.slots, members.living()
    idle = sorted(
        (
            s
            for s in living - owning - wanted - members.helping()
            if group.is_open(s) and not members.get(s).leaving
        ),
        key=lambda slot: (not members.get(slot).ready, slot),
    )
    replacements: dict[Slot, Slot] = {}
    for new in sorted(wanted - owning - living - frozenset(rules.pins.values())):
        limit = group.config.limits.for_slot(new)
        if same_limit := [slot for slot in idle if group.config.limits.for_slot(slot) == limit]:
            replacements[new] = same_limit[0]
            idle.remove(same_limit[0])
    return {partition: replacements.get(slot, slot) for partition, slot in target.items()}


# --- whether a plan is worth its moves ----------------------------------------------------------


def difference(current: Assignment, target: Assignment) -> Difference:
    """Return the changes that lead from `current` to `target`."""
    return Difference(
        moves={p: (current[p], target[p]) for p in moved_partitions(current, target)},
        first_starts={p: target[p] for p in sorted(target.keys() - current.keys())},
        departures={p: current[p] for p in sorted(current.keys() - target.keys())},
    )


def evaluate(group: Group, target: Assignment, triggered_by: tuple[str, ...]) -> Plan | Rejected:
    """Decide whether to go from the present owners to those of `target`.

    A triggered plan is always accepted; partitions without a reader trigger one, too. Any other
    with moves must save consumers: at least half the share of bytes that it moves. Bytes that no
    longer cross zones pay for moves, too, at `zone_price`.

    Returns:
        The plan with its reasons, or the reason for its rejection.
    """
    current, rates = group.members.assignment(), group.needs(target)
    changes = difference(current, target)
    if not changes:
        return Rejected("nothing would change")
    triggers = triggered_by or _unread_trigger(changes)
    balance = _Balance.of(group, rates, target, changes)
    if not triggers and changes.moves and not balance.worthwhile:
        return Rejected(f"{balance.summary()}; {balance.allowance()}")
    return Plan(
        target=target,
        changes=changes,
        rscore=rscore(rates, group.config.capacity, current, target),
        reasons=(*triggers, balance.summary()),
    )


def _unread_trigger(changes: Difference) -> tuple[str, ...]:
    starts = len(changes.first_starts)
    return (f"{counted(starts, 'partition')} without a reader",) if starts else ()


def counted(number: int, noun: str) -> str:
    """Return `1 partition`, `2 partitions`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Balance:
    """What a plan saves and what it costs."""

    before: int  # consumers
    after: int
    moves: int
    partitions: int  # in the target
    moved_share: float  # share of all bytes/s that moves, 0 to 1
    zone_price: float  # 0: zones do not matter
    near_share: float  # of all bytes/s: what no longer crosses zones
    crossing: tuple[float, float]  # share of all bytes/s that crosses zones, before and after

    @classmethod
    def of(cls, group: Group, rates: Rates, target: Assignment, changes: Difference) -> "_Balance":
        current, known = group.members.assignment(), zones(group)
        total = sum(rates[p] for p in sorted(target))
        near = sum(rates[p] for p in near_moves(known, changes.moves))
        crossing = (known.crossing(rates, owners) for owners in (current, target))
        before, after = (bytes_ / total if total else 0.0 for bytes_ in crossing)
        return cls(
            zone_price=known.price,
            near_share=near / total if total else 0.0,
            crossing=(before, after),
            before=len(set(current.values())),
            after=len(set(target.values())),
            moves=len(changes.moves),
            partitions=len(target),
            moved_share=sum(rates[p] for p in changes.moves) / total if total else 0.0,
        )

    @property
    def saved(self) -> float:
        """The share of consumers that are not needed any more; below 0 if more are needed."""
        return (self.before - self.after) / self.before

    @property
    def worthwhile(self) -> bool:
        # Moving a partition without load still pauses its reader.
        before, after = self.crossing
        gains = self.saved > 0 or (self.saved == 0 and after < before)
        return gains and self.saved >= MIN_SAVING * (self.moved_share - self.paid_by_zones)

    @property
    def paid_by_zones(self) -> float:
        """The share of bytes whose moves are paid by what no longer crosses zones."""
        return self.zone_price * self.near_share

    def summary(self) -> str:
        consumers = counted(self.before, "consumer")
        change = consumers if self.before == self.after else f"{consumers} -> {self.after}"
        if not self.moves:
            return f"{change}; nothing moves"
        moves = (
            f"{change}; moves {self.moves} of {counted(self.partitions, 'partition')}, "
            f"{self.moved_share:.1%} of the bytes"
        )
        if not self.zone_price:
            return moves
        before, after = self.crossing
        return moves + f"; {after:.1%} of the bytes cross zones, {before:.1%} before"

    def allowance(self) -> str:
        """Return which moves would have been accepted, as text."""
        payable = max(0.0, self.saved) / MIN_SAVING + self.paid_by_zones
        if self.saved <= 0:
            paid = f", and bytes that no longer cross zones pay for {payable:.1%} at most"
            return "saves no consumer" + (paid if self.near_share else "")
        return f"saving {self.saved:.1%} of the consumers pays for {payable:.1%} at most"


# --- what makes a plan necessary ----------------------------------------------------------------


def triggers(group: Group) -> tuple[str, ...]:
    """Return what makes a new plan necessary, as text for its reasons; empty: nothing does."""
    reasons = [] if group.people.controls.frozen else [*reader_triggers(group)]
    if unread := len(group.unread()):
        reasons.append(f"{counted(unread, 'partition')} without a reader")
    if gone := len(group.gone_partitions()):
        reasons.append(f"{counted(gone, 'partition')} gone")
    return tuple(reasons)


def overloaded(group: Group) -> Iterator[tuple[Slot, float]]:
    """Yield the consumers above their limits, and how many times that they carry, sorted.

    A single partition above the limit cannot be placed better.
    """
    for slot, load in sorted(group.loads().items()):
        limit = group.config.limits.for_slot(slot)
        if load > limit and len(group.members.partitions.owned_by(slot)) > 1:
            yield slot, load / limit


def overload(slot: Slot, share: float) -> str:
    """Return that a consumer carries so many times its limit, as text."""
    return f"consumer {slot} carries {share:.1%} of its limit"


def reader_triggers(group: Group) -> tuple[str, ...]:
    """Return what makes other readers necessary for partitions that have one, as text."""
    reasons = []
    rules = group.people.controls.rules
    for slot, share in overloaded(group):
        if any(rules.pin(p) != slot for p in group.members.partitions.owned_by(slot)):
            reasons.append(f"{overload(slot, share)}{backlog(group, slot)}")
    if rules.consumers is None:
        wanted = min(group.settings.min_slots, len(group.members.partitions))
        if rules:
            wanted = min(wanted, _most_consumers(group))
        reading = len(group.members.partitions.slots)
        if 0 < reading < wanted:  # with none, all are without a reader
            reasons.append(f"{reading} of at least {wanted} consumers read")
    return (*reasons, *order_triggers(group))


def order_triggers(group: Group) -> tuple[str, ...]:
    """Return what people's orders want to be otherwise, as text."""
    controls = group.people.controls
    if not (rules := controls.rules):
        return ()
    current = group.owners()
    reasons = [controls.of_slot(slot) for slot in sorted(rules.drained & set(current.values()))]
    pins = ((p, rules.pin(p)) for p in current) if rules.pins else ()
    if astray := sorted(p for p, pin in pins if pin is not None and pin != current[p]):
        number = counted(len(astray), "partition")
        reasons.append(f"{number} not at the consumer of the pin: {astray[0]}")
    if rules.consumers is not None and current:
        wanted = max(rules.consumers, len({rules.pin(p) for p in current} - {None}))
        wanted = min(wanted, _most_consumers(group))
        if (reading := len(group.members.partitions.slots)) != wanted:
            reasons.append(f"{reading} of {counted(wanted, 'consumer')} read: {controls.scale}")
    return tuple(reasons)


def _most_consumers(group: Group) -> int:
    readers = {p: group.members.partitions[p].slot for p in group.existing()}
    return most_consumers(readers, group.people.controls.rules, group.settings.max_slots)


def backlog(group: Group, slot: Slot) -> str:
    """Return what a consumer has to catch up with, as the end of a sentence; empty: nothing."""
    own = group.members.partitions.owned_by(slot) if group.load.catch_up else ()
    behind = sum(p in group.load.catch_up for p in own)
    if not behind:
        return ""
    return f", with {counted(behind, 'partition')} to catch up in {group.settings.catch_up_s:g} s"


def has_fresh_measurements(group: Group, since: float, now: float) -> bool:
    """Whether the measurements are fresh and cover every topic of the group.

    After `stale_s` in this state (`since`) a topic without a measurement is ignored: it does not
    block the others.
    """
    load, stale_s = group.load, group.config.stale_s
    complete = all(topic in load.rates.names for topic in group.members.partitions.topics)
    return load.is_fresh(now, stale_s) and (complete or now - since > stale_s)


# --- messages -----------------------------------------------------------------------------------


def planned_message(group: Group, plan: Plan) -> Planned:
    """Return the message for a plan that is carried out."""
    approved = group.people.approved_plan if group.settings.mode != "act" else None
    return Planned(
        term=group.term or 0,
        reasons=plan.reasons,
        consumers=len(set(plan.target.values())),
        moves={p: slot for p, (_, slot) in plan.changes.moves.items()},
        rscore=plan.rscore,
        rates=group.needs(plan.target),
        targets=plan.target,
        keeps=approved.plan if approved else None,
        moved=count_moves(group.people, len(plan.changes.moves)).moved,
    )


def proposed_message(group: Group, plan: Plan) -> Proposed:
    """Return the message for a plan that needs approval, or is only published (mode `observe`)."""
    return Proposed(
        term=group.term or 0,
        reasons=plan.reasons,
        consumers=len(set(plan.target.values())),
        rscore=plan.rscore,
        owners=group.members.assignment(),
        targets=plan.target,
        waits=group.settings.mode == "approve",
    )
