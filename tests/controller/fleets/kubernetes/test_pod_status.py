"""Whether a process has ended, from its pod's status."""

from typing import Any

import pytest

from binwright.controller.fleets.kubernetes.pod_status import any_process_ended, has_ended
from binwright.protocol.ports.fleet import Process

NINE, TEN = "2026-03-01T09:00:00Z", "2026-03-01T10:00:00Z"
TEN_MS = 1_772_359_200_000
HELLO = Process("orders-consumer-0-5d9c-x2x4z/1/ab12cd34", TEN_MS)


def ended(at: str | None) -> dict[str, Any]:
    return {"terminated": {"exitCode": 137, "startedAt": NINE, "finishedAt": at}}


def runs(since: str) -> dict[str, Any]:
    return {"running": {"startedAt": since}}


WAITS: dict[str, Any] = {"waiting": {"reason": "CrashLoopBackOff"}}


def pod(
    state: dict[str, Any],
    last: dict[str, Any] | None = None,
    *,
    name: str = "consumer",
    phase: str = "Running",
) -> dict[str, Any]:
    container = {"name": name, "state": state, "lastState": last or {}}
    return {"status": {"phase": phase, "containerStatuses": [container]}}


LATER, SAME = "2026-03-01T10:00:01Z", TEN
CASES = {
    "it runs": (pod(runs(NINE)), False),
    "it was the second process, and runs": (pod(runs(NINE), ended(NINE)), False),
    "it began in the same second": (pod(runs(SAME), ended(SAME)), False),
    "it has ended": (pod(ended(LATER)), True),
    "it has ended, and another is waited for": (pod(WAITS, ended(LATER)), True),
    "it has ended, and another runs": (pod(runs(LATER), ended(LATER)), True),
    "another runs, the end is not recorded": (pod(runs(LATER)), True),
    "the time of its end is not known": (pod(WAITS, ended(None)), False),
    "another container has ended": (pod(ended(LATER), name="sidecar"), False),
    "the pod was evicted": ({"status": {"phase": "Failed"}}, True),
    "the pod is new": ({"metadata": {}}, False),
    "its container is being created": ({"status": {"phase": "Pending"}}, False),
}


@pytest.mark.parametrize("case", CASES)
def test_a_process_has_ended_if_it_sent_its_hello_before_an_end_or_a_start(case: str) -> None:
    found, expected = CASES[case]
    assert has_ended(found, HELLO) is expected


def test_a_process_without_a_hello_time_has_ended_only_with_its_whole_pod() -> None:
    """A consumer of an earlier version may be the process that runs now."""
    old = Process(HELLO.name)
    assert not has_ended(pod(runs(LATER), ended(LATER)), old)
    assert has_ended({"status": {"phase": "Failed"}}, old)


def test_a_pod_shows_an_end_when_one_of_its_processes_or_all_have_ended() -> None:
    ends = pod(ended(TEN)), pod(runs(TEN), ended(TEN)), {"status": {"phase": "Succeeded"}}
    assert all(map(any_process_ended, ends))
    assert not any(map(any_process_ended, (pod(runs(TEN)), {"metadata": {}}, pod(WAITS))))
