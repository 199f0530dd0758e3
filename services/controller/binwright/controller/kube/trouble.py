"""Why a consumer's pod does not run, as Kubernetes tells it."""

from collections.abc import Iterable
from dataclasses import dataclass

from binwright.controller.kube.api import Obj

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
_SAME = {"ErrImagePull": "ImagePullBackOff"}  # the two take turns


@dataclass(frozen=True, slots=True)
class Trouble:
    """What keeps a slot from running."""

    reason: str  # one word, Kubernetes' own
    message: str


def of_pod(pod: Obj) -> Trouble | None:
    """Return what is wrong with a pod; None for one that runs or is still on its way."""
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
            told = " ".join(filter(None, (waiting.get("message"), _last(container))))
            return Trouble(_SAME.get(waiting["reason"], waiting["reason"]), told)
    return None


def _containers(status: Obj) -> Iterable[Obj]:
    yield from status.get("initContainerStatuses") or ()
    yield from status.get("containerStatuses") or ()


def _last(container: Obj) -> str:
    ended = container.get("lastState", {}).get("terminated")
    if not ended:
        return f"container {container['name']}"
    return (
        f"container {container['name']} ended with {ended.get('exitCode')} "
        f"({ended.get('reason', 'no reason given')}), {container.get('restartCount', 0)} restarts"
    )


def of_deployment(deployment: Obj) -> Trouble | None:
    """Return why no pod could be made (a quota, an admission rule); None if one could."""
    for condition in deployment.get("status", {}).get("conditions") or ():
        if condition["type"] == "ReplicaFailure" and condition["status"] == "True":
            return Trouble(condition.get("reason", "ReplicaFailure"), condition.get("message", ""))
    return None
