"""Finds out from a pod's status whether a consumer's process has ended.

A container that is restarted in its pod keeps the host name, so that does not distinguish the
process that has ended from the one that runs now. The time does: the kubelet and the process use
the clock of the same node. The kubelet rounds down to seconds, so the end of a process in the same
second as its Hello is not recognised.
"""

from collections.abc import Iterator
from datetime import datetime

from binwright.controller.fleets.kubernetes.deployment import CONTAINER
from binwright.kubernetes.api import Obj
from binwright.protocol.ports.fleet import Process

_ENDED_PHASES = ("Failed", "Succeeded")  # all containers have ended and are not restarted


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
