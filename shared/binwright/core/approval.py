"""Plans that wait for a person, and the one that was approved last, which is kept true.

Where plans need approval, the controller by itself only brings back what the last approved plan
says, and finds readers for what nobody reads. All of it is folded from metadata partition 0: a
number that a person read stays good when another controller takes over.
"""

from dataclasses import dataclass, replace

from binwright.core.events import Action, Heard, Publish, Say
from binwright.core.group import Group, Offer
from binwright.core.messages import Accepted, Approved, Planned, Proposed, Withdrawn
from binwright.core.model import BytesPerSecond, Slot, TopicPartition
from binwright.core.ownership import Partitions
from binwright.core.plan import Plan, Rejected, weigh
from binwright.core.relief import spread, weighed

Told = Proposed | Approved | Accepted | Withdrawn | Planned


def hear_plan(group: Group, message: Told, event: Heard) -> tuple[Group, tuple[Action, ...]]:
    """Fold one record about plans into what is known of them."""
    match message:
        case Proposed():
            return _shown(replace(group, offer=Offer(message, event.offset)), message, event.offset)
        case Approved():
            return _approved(group, message)
        case Accepted():
            return replace(_without(group, message.plan), kept=message), ()
        case Withdrawn(plan=number):
            return _without(group, number), ()
        case _:
            group = replace(group, last_plan=message.targets)
            return _voided(group, message.term) if message.keeps is None else group, ()


def _shown(group: Group, plan: Proposed, number: int) -> tuple[Group, tuple[Action, ...]]:
    if group.term is None:  # history
        return group, ()
    facts = {
        "plan": number,
        "reasons": plan.reasons,
        "consumers": plan.consumers,
        "moves": len(plan.moves),
        "waits": plan.waits,
    }
    return group, (Say("plan.proposed", facts),)


def _voided(group: Group, term: int) -> Group:
    """Take that a controller asked nobody: there is nothing any more to bring back, or to approve.

    One that was deposed when the word was given does not count.
    """
    kept, offer = group.kept, group.offer
    if kept is not None and kept.term <= term:
        kept = replace(kept, targets={})
    if offer is not None and offer.number is not None and offer.plan.term <= term:
        offer = None
    return replace(group, kept=kept, offer=offer)


def _without(group: Group, number: int) -> Group:
    """Drop the plan that waits, if it is this one or older."""
    offer = group.offer
    over = offer is not None and offer.number is not None and offer.number <= number
    return replace(group, offer=None) if over else group


def _approved(group: Group, message: Approved) -> tuple[Group, tuple[Action, ...]]:
    number, offer = message.plan, group.offer
    facts: dict[str, object] = {"plan": number, "by": message.by}
    if offer is not None and offer.number == number and offer.plan.waits:
        said = () if offer.approved or group.term is None else (Say("plan.approved", facts),)
        return replace(group, offer=replace(offer, approved=True)), said
    if group.term is None or (group.kept is not None and number <= group.kept.plan):
        return group, ()  # history, or it was carried out and is only said again
    return group, (Say("approval.refused", {**facts, "reason": _refusal(offer, number)}),)


def _refusal(offer: Offer | None, number: int) -> str:
    if offer is None or offer.number is None:
        return "no plan waits"
    if offer.number != number:
        return f"it is not the plan that waits: that is {offer.number}"
    return "the group's mode is to observe only"


# --- whether it is still the same plan ---------------------------------------------------------


def changed(group: Group, plan: Proposed) -> str | None:
    """Return what is not any more as it was when the plan was made; None: it can be weighed."""
    if plan.waits != (group.rules.mode == "approve"):
        return "the group's mode has changed"
    if plan.targets.keys() != {p for p in group.partitions if not group.gone(p)}:
        return "partitions have come or gone"
    if plan.owners != group.assignment():
        return "partitions have other readers"
    return None


def reviewed(group: Group, plan: Proposed, forced: tuple[str, ...]) -> Plan | Rejected:
    """Weigh again, by the rates of now, a plan that waits."""
    rates = {p: group.rates.get(p, BytesPerSecond(0.0)) for p in plan.targets}
    loads: dict[Slot, list[float]] = {}
    for partition, slot in plan.targets.items():
        loads.setdefault(slot, []).append(rates[partition])
    full = len(loads) >= group.rules.max_slots  # then there is nothing better
    for slot, found in sorted(loads.items()):
        if not full and len(found) > 1 and sum(found) > group.rules.limit_of(slot):
            return Rejected(f"consumer {slot} would carry {sum(found):,.0f} B/s by now")
    return weigh(rates, group.rules.capacity, group.assignment(), plan.targets, forced)


def accept(group: Group) -> tuple[Group, tuple[Action, ...]]:
    """Take the plan that waits for what is to be from now on."""
    offer = group.offer
    if offer is None or offer.number is None:
        raise ValueError("no plan waits")
    kept = Accepted(term=group.term or 0, plan=offer.number, targets=offer.plan.targets)
    return replace(group, offer=None, kept=kept), (Publish(kept),)


def withdraw(group: Group, reason: str) -> tuple[Group, tuple[Action, ...]]:
    """Give up the plan that waits; say why."""
    offer = group.offer
    if offer is None or offer.number is None:
        raise ValueError("no plan waits")
    said = Say(
        "plan.withdrawn", {"plan": offer.number, "approved": offer.approved, "reason": reason}
    )
    gone = Withdrawn(term=group.term or 0, plan=offer.number, reason=reason)
    return replace(group, offer=None), (Publish(gone), said)


# --- what nobody is asked for ------------------------------------------------------------------


def _approved_places(group: Group) -> dict[TopicPartition, Slot]:
    """Return what is to be brought back; never a slot that is allowed no more."""
    if group.rules.mode != "approve" or group.kept is None:
        return {}
    return {p: slot for p, slot in group.kept.targets.items() if slot < group.rules.max_slots}


def stays(group: Group) -> frozenset[Slot]:
    """Return the slots that run whatever happens, as long as nobody approves another plan."""
    return frozenset(_approved_places(group).values())


def displaced(group: Group) -> bool:
    """Whether something is not where it was approved, as when a consumer is starting again.

    Soon it will be: no plan is made, or thrown away, for what is there only meanwhile.
    """
    known = group.partitions
    return any(p in known and known[p].slot != slot for p, slot in _approved_places(group).items())


@dataclass(frozen=True, slots=True)
class Kept:
    """A group in which everything is as approved, as far as its consumers are there.

    To see that again and again would cost by all partitions; that nothing has changed does not.
    """

    partitions: Partitions
    plan: Accepted | None
    usable: tuple[Slot, ...]
    displaced: bool

    @classmethod
    def of(cls, group: Group) -> "Kept":
        """Return it, of a group in which `restored` finds nothing to do."""
        return cls(group.partitions, group.kept, tuple(group.usable()), displaced(group))

    def holds(self, group: Group) -> bool:
        """Whether there is nothing to do in this group either: it has not changed."""
        same = group.partitions is self.partitions and group.kept is self.plan
        return same and not group.all_gone() and tuple(group.usable()) == self.usable


def inherited(
    group: Group, living: frozenset[Slot]
) -> tuple[Group, frozenset[Slot], tuple[Action, ...]]:
    """Return with which slots a reign begins, of those that live and those that were approved.

    Where plans need approval and none was given yet, what is there counts as approved.
    """
    if group.rules.mode != "approve":
        return group, living, ()
    owners = group.assignment()
    if group.kept is not None and group.kept.targets:
        return group, stays(group) | group.holders(), ()
    if not owners:
        return group, living, ()
    term = group.term or 0
    kept = Accepted(term=term, plan=term, targets=owners)
    return replace(group, kept=kept, offer=None), living, (Publish(kept),)


def restoring(group: Group, kept: Kept | None) -> tuple[Plan | None, Kept | None]:
    """Return the plan that brings back what was approved, or what need not be looked at again."""
    if group.rules.mode != "approve":
        return None, None
    if kept is not None and kept.holds(group):
        return None, kept
    plan = restored(group)
    return plan, Kept.of(group) if plan is None else None


def restored(group: Group) -> Plan | None:
    """Return the plan that brings back what was approved last; None where all is so.

    A partition goes to its approved consumer if that is ready, else stays with who reads it, else
    goes to the least loaded that is there: that waits for nobody. With nobody there, newcomers of
    the approved slots are waited for. What is gone is stopped.
    """
    current, kept = group.assignment(), _approved_places(group)
    there = frozenset(group.usable())
    placed: dict[TopicPartition, Slot] = {}
    homeless: list[TopicPartition] = []
    for partition in sorted(p for p in group.partitions if not group.gone(p)):
        approved, reader = kept.get(partition), current.get(partition)
        if approved is not None and (approved in there or (reader is None and not there)):
            placed[partition] = approved
        elif reader is not None:
            placed[partition] = reader
        else:
            homeless.append(partition)
    heirs = sorted(there or set(kept.values()))
    if homeless and not heirs:
        return None
    target = spread(group, placed, homeless, heirs)
    number = group.kept.plan if group.kept else None
    return weighed(group, target, ("finds readers" if number is None else f"keeps plan {number}",))
