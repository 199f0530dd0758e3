"""Builds the status of a ConsumerGroup object."""

from collections.abc import Mapping, Sequence

from binwright.controller.decide.states import State
from binwright.controller.fleets.kubernetes.pod_status import Trouble
from binwright.kubernetes.objects import Obj
from binwright.kubernetes.status import Condition
from binwright.protocol.model import Slot

SIGNIFICANT = 2  # digits of a rate: fewer changes of the status


def group_status(state: State, time: float) -> tuple[Obj, Condition, Condition]:
    """Return the status fields of a group, and the conditions Ready and Measured.

    Args:
        state: The machine's state.
        time: Now, seconds, of the event loop's clock.
    """
    group = state.group
    loads = group.loads()
    members, partitions = group.members, group.members.partitions
    living = sorted(members.living())
    unread = sum(at.slot is None for at in partitions.values())
    unready = [slot for slot in living if not members.get(slot).usable]
    numbers = {
        "state": type(state).__name__,
        "consumers": len(living),
        "partitions": len(partitions),
        "bytesPerSecond": rounded(sum(loads.values())),
    }
    if unread or not partitions:
        text = f"{unread} of {len(partitions)} partitions are read by no consumer"
        ready = Condition("Ready", holds=False, reason="PartitionsUnread", message=text)
    elif unready:
        text = f"consumers {', '.join(map(str, unready))} are not ready yet"
        ready = Condition("Ready", holds=False, reason="ConsumersUnready", message=text)
    else:
        ready = Condition("Ready", holds=True, reason="AllRead")
    measured = (
        Condition("Measured", holds=True, reason="Fresh")
        if group.load.is_fresh(time, group.config.stale_s)
        else Condition(
            "Measured",
            holds=False,
            reason="Stale",
            message="no monitor publishes rates of these topics: does one run, do they exist?",
        )
    )
    return numbers, ready, measured


def health_condition(troubles: Mapping[Slot, Trouble], refusals: Sequence[str]) -> Condition:
    """Return the condition Healthy: whether all desired pods run."""
    texts = [f"slot {slot}: {t.reason}: {t.message}" for slot, t in sorted(troubles.items())]
    if not texts and not refusals:
        return Condition("Healthy", holds=True, reason="PodsRun")
    reason = "Refused" if refusals else next(iter(troubles.values())).reason
    return Condition("Healthy", holds=False, reason=reason, message="; ".join([*refusals, *texts]))


def rounded(rate: float) -> int:
    """Return a rate, bytes/s, rounded to two significant digits."""
    return int(float(f"{rate:.{SIGNIFICANT}g}"))
