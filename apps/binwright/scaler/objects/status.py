"""Builds the status of a ScaledGroup object, which `kubectl get` and `describe` show."""

from datetime import UTC, datetime
from typing import Any

from binwright.kubernetes.objects import Obj, field_name, now
from binwright.kubernetes.status import Condition
from binwright.scaler.decide.learning import ESTIMATES, Estimate, Learnt
from binwright.scaler.decide.sizing import (
    ReplicaChange,
    ReplicaUsage,
    ScalingState,
    Verdict,
    rounded,
)
from binwright.scaler.decide.throughput import Throughput
from binwright.scaler.passes import ScaledTarget

MINUTE_S = 60.0
MAX_SHOWN = 200  # partitions in a packing, replicas too; an object must not exceed a megabyte
TIME_FORMAT = "%Y-%m-%dT%H:%M:%SZ"


def numbers_of(target: ScaledTarget) -> Obj:
    """Return the status fields of a target; those that are not known yet are left out."""
    if (verdict := target.verdict) is None:
        return {}
    numbers: Obj = {
        "replicas": verdict.current,
        "wantedReplicas": verdict.wanted,
        "partitions": len(verdict.work.loads),
        "lag": rounded(verdict.work.lag),
        "recordsPerSecond": rounded(verdict.work.rate),
        "reasons": list(verdict.reasons),
        "packing": _packing(verdict),
        "hotPartitions": [str(partition) for partition in verdict.hot[:MAX_SHOWN]],
        "proposals": target.state.proposals,
    }
    if verdict.capacity is not None:
        numbers["replicaRecordsPerSecond"] = rounded(verdict.capacity)
    if learnt := learnt_of(target.state.learnt):
        numbers["learnt"] = learnt
    if target.state.last_order is not None:
        numbers["orderedReplicas"] = target.state.last_order
    if (usage := target.state.usage).seconds:
        numbers["usage"] = {
            "minutes": round(usage.seconds / MINUTE_S),
            "replicaMinutes": round(usage.replica_s / MINUTE_S),
        }
        if (before := target.config.before_replicas) is not None:
            numbers["usage"]["savedReplicaMinutes"] = round(usage.saved_s(before) / MINUTE_S)
    return numbers


def proposal_of(verdict: Verdict, known: Obj | None) -> Obj | None:
    """Return the change that is shown and not made; `known` is the one in the status."""
    change = verdict.proposal
    if change is None or verdict.order is not None:
        return None
    since = known["time"] if known and known.get("number") == change.number else now()
    return {
        "number": change.number,
        "time": since,
        "waits": verdict.waits,
        "replicas": change.replicas,
    }


def conditions_of(target: ScaledTarget) -> list[Condition]:
    """Return the conditions Measured and Scaling."""
    verdict = target.verdict
    if target.fault or verdict is None:
        text = target.fault or "the first pass is under way"
        return [Condition("Measured", holds=False, reason="Fault", message=text)]
    missing = verdict.work.missing
    text = verdict.fault or (f"{missing} partitions have no fresh end or rate" if missing else "")
    reason = "Unknown" if verdict.fault else "Missing" if missing else "Fresh"
    measured = Condition("Measured", holds=not text, reason=reason, message=text)
    return [measured, _scaling(target, verdict)]


def _scaling(target: ScaledTarget, verdict: Verdict) -> Condition:
    def held(reason: str, message: str) -> Condition:
        return Condition("Scaling", holds=False, reason=reason, message=message)

    if target.config.paused:
        return held("Paused", "spec.paused is set")
    if verdict.blocked:
        return held("AnotherOwner", verdict.blocked)
    if target.config.mode == "observe":
        return held("Observed", "spec.mode is observe: changes are only shown")
    if verdict.waits:
        return held("WaitsForApproval", "status.proposal waits for the approve annotation")
    return Condition("Scaling", holds=True, reason="Acts")


def state_from(status: Obj, now_s: float, wall_s: float) -> ScalingState:
    """Return what an earlier scaler remembered of a group, from the object's status.

    Args:
        status: Of the object.
        now_s: Monotonic.
        wall_s: Seconds since 1970.
    """
    scaled_s = None
    if at := status.get("lastScaled", {}).get("time"):
        then = datetime.strptime(at, TIME_FORMAT).replace(tzinfo=UTC).timestamp()
        scaled_s = now_s - max(0.0, wall_s - then)
    shown, used = status.get("proposal"), status.get("usage", {})
    return ScalingState(
        last_order=status.get("orderedReplicas"),
        scaled_s=scaled_s,
        throughput=Throughput(per_replica=status.get("replicaRecordsPerSecond")),
        proposal=ReplicaChange(shown["number"], shown["replicas"]) if shown else None,
        proposals=status.get("proposals", 0),
        learnt=_remembered(status.get("learnt", {})),
        usage=ReplicaUsage(
            seconds=MINUTE_S * used.get("minutes", 0),
            replica_s=MINUTE_S * used.get("replicaMinutes", 0),
        ),
    )


def learnt_of(learnt: Learnt) -> Obj:
    """Return what was learnt, as the status shows it."""
    return {
        field_name(name).removesuffix("Seconds"): {
            "seconds": round(estimate.value, 2),
            "samples": len(estimate.samples),
            "confidence": round(estimate.confidence, 2),
        }
        for name in ESTIMATES
        if (estimate := getattr(learnt, name))
    }


def _remembered(shown: Obj) -> Learnt:
    """Return what an earlier scaler had learnt, as so many equal samples as have its confidence."""
    estimates: dict[str, Any] = {}
    for name in ESTIMATES:
        if one := shown.get(field_name(name).removesuffix("Seconds")):
            number = round(2 * one["confidence"] / (1 - min(0.9, one["confidence"])))
            estimates[name] = Estimate((float(one["seconds"]),) * number)
    return Learnt(**estimates)


def _packing(verdict: Verdict) -> list[Obj]:
    packing: list[Obj] = []
    shown = 0
    for inside in verdict.packing:
        if shown + len(inside) > MAX_SHOWN:
            break
        shown += len(inside)
        rate = sum(verdict.work.loads[partition].rate for partition in inside)
        packing.append(
            {"partitions": [str(p) for p in sorted(inside)], "recordsPerSecond": rounded(rate)}
        )
    return packing
