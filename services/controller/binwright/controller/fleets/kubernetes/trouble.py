"""Reads from Kubernetes objects why a consumer's pod does not run."""

from collections.abc import Iterable
from dataclasses import dataclass

from binwright.kubernetes.api import Obj

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
