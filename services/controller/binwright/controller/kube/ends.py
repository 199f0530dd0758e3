"""Whether a consumer's process has ended, by its pod.

A container that is started again in its pod has the same host name, so that does not tell the
process that has ended from the one that runs now. Time does: the kubelet's and the process's are of
one node, and one clock. The kubelet rounds to seconds, downwards: what ended in the second of its
Hello is not told of.
"""

from collections.abc import Iterator
from datetime import datetime

from binwright.controller.kube.api import Obj
from binwright.controller.kube.deployment import CONTAINER
from binwright.core.ports import Process

_OVER = ("Failed", "Succeeded")  # all containers have ended for good


def has_ended(pod: Obj, process: Process) -> bool:
    """Whether the process that sent its Hello from this pod is over."""
    if pod.get("status", {}).get("phase") in _OVER:
        return True
    return any(0 < process.sent_ms < at_ms for at_ms in _later(pod))


def tells_of_an_end(pod: Obj) -> bool:
    """Whether a process of this pod has ended, as far as the pod tells."""
    if pod.get("status", {}).get("phase") in _OVER:
        return True
    return any("terminated" in state for state in _states(pod))


def _later(pod: Obj) -> Iterator[int]:
    """Yield moments, ms: whoever said Hello before one of them has ended by it."""
    for state in _states(pod):
        for kind, moment in (("terminated", "finishedAt"), ("running", "startedAt")):
            if at := (state.get(kind) or {}).get(moment):
                yield round(datetime.fromisoformat(at).timestamp() * 1000)


def _states(pod: Obj) -> Iterator[Obj]:
    for container in pod.get("status", {}).get("containerStatuses") or ():
        if container["name"] == CONTAINER:
            yield container.get("state") or {}
            yield container.get("lastState") or {}
