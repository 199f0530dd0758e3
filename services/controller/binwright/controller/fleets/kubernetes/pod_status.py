"""What Kubernetes objects say of a consumer: why its pod does not run, whether a process has ended.

A container that is restarted in its pod keeps the host name, so that does not distinguish the
process that has ended from the one that runs now. The time does: the kubelet and the process use
the clock of the same node. The kubelet rounds down to seconds, so the end of a process in the same
second as its Hello is not recognised.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from binwright.controller.fleets.kubernetes.template import CONTAINER
from binwright.kubernetes.objects import Obj
from binwright.protocol.ports.fleet import Process

_WAITING = {
    "CrashLoopBackOff",
    "CreateContainerConfigError",
    "CreateContainerError",
    "ErrImageNeverPull",
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "RunContainerError",
}
_SAME = {"ErrImagePull": "ImagePullBackOff"}  # the kubelet alternates between the two
_ENDED_PHASES = ("Failed", "Succeeded")  # all containers have ended and are not restarted


@dataclass(frozen=True, slots=True)
class Trouble:
    """What keeps a slot from running."""

    reason: str  # one word, Kubernetes' own term
    message: str


def pod_trouble(pod: Obj) -> Trouble | None:
    """Return what is wrong with a pod; None if it runs or is starting."""
    status = pod.get("status", {})
    if pod["metadata"].get("deletionTimestamp"):
        return None
    if status.get("phase") == "Failed":  # evicted, or its node was shut down
        return Trouble(status.get("reason", "Failed"), status.get("message", "the pod failed"))
    for condition in status.get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return Trouble(condition.get("reason", "Unschedulable"), condition.get("message", ""))
    for container in _containers(status):
        if (waiting := container.get("state", {}).get("waiting")) and waiting.get(
            "reason"
        ) in _WAITING:
            text = " ".join(filter(None, (waiting.get("message"), _last_end(container))))
            return Trouble(_SAME.get(waiting["reason"], waiting["reason"]), text)
    return None


def _containers(status: Obj) -> Iterable[Obj]:
    yield from status.get("initContainerStatuses") or ()
    yield from status.get("containerStatuses") or ()


def _last_end(container: Obj) -> str:
    ended = container.get("lastState", {}).get("terminated")
    if not ended:
        return f"container {container['name']}"
    return (
        f"container {container['name']} ended with {ended.get('exitCode')} "
        f"({ended.get('reason', 'no reason given')}), {container.get('restartCount', 0)} restarts"
    )


def deployment_trouble(deployment: Obj) -> Trouble | None:
    """Return why no pod could be created (a quota, an admission rule); None if one could."""
    for condition in deployment.get("status", {}).get("conditions") or ():
        if condition["type"] == "ReplicaFailure" and condition["status"] == "True":
            return Trouble(condition.get("reason", "ReplicaFailure"), condition.get("message", ""))
    return None


def has_ended(pod: Obj, process: Process) -> bool:
    """Whether the process that sent its Hello from this pod has ended."""
    if pod.get("status", {}).get("phase") in _ENDED_PHASES:
        return True
    return any(0 < process.sent_ms < at_ms for at_ms in _ends_ms(pod))


def any_process_ended(pod: Obj) -> bool:
    """Whether the pod's status shows that any of its processes has ended."""
    if pod.get("status", {}).get("phase") in _ENDED_PHASES:
        return True
    return any("terminated" in state for state in _states(pod))


def _ends_ms(pod: Obj) -> Iterator[int]:
    """Yield times, ms: a process that sent its Hello before one of them has ended."""
    for state in _states(pod):
        for kind, moment in (("terminated", "finishedAt"), ("running", "startedAt")):
            if at := (state.get(kind) or {}).get(moment):
                yield round(datetime.fromisoformat(at).timestamp() * 1000)


def _states(pod: Obj) -> Iterator[Obj]:
    for container in pod.get("status", {}).get("containerStatuses") or ():
        if container["name"] == CONTAINER:
            yield container.get("state") or {}
            yield container.get("lastState") or {}
