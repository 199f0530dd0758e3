"""Whether a process has ended, by what a kubelet says of its pod."""

from typing import Any

import pytest

from binwright.controller.kube.ends import has_ended, tells_of_an_end
from binwright.core.ports import Process

NINE, TEN = "2026-03-01T09:00:00Z", "2026-03-01T10:00:00Z"
TEN_MS = 1_772_359_200_000
SAID = Process("orders-consumer-0-5d9c-x2x4z/1/ab12cd34", TEN_MS)


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
    "it began in this very second": (pod(runs(SAME), ended(SAME)), False),
    "it has ended": (pod(ended(LATER)), True),
    "it has ended, and another is waited for": (pod(WAITS, ended(LATER)), True),
    "it has ended, and another runs": (pod(runs(LATER), ended(LATER)), True),
    "another runs, of its end nothing is known": (pod(runs(LATER)), True),
    "when it ended is not known": (pod(WAITS, ended(None)), False),
    "another container has ended": (pod(ended(LATER), name="sidecar"), False),
    "the pod was evicted": ({"status": {"phase": "Failed"}}, True),
    "the pod is new": ({"metadata": {}}, False),
    "its container is being made": ({"status": {"phase": "Pending"}}, False),
}


@pytest.mark.parametrize("case", CASES)
def test_a_process_has_ended_if_it_said_hello_before_an_end_or_a_start(case: str) -> None:
    found, expected = CASES[case]
    assert has_ended(found, SAID) is expected


def test_a_process_that_did_not_tell_when_it_said_hello_is_left_to_its_silence() -> None:
    """One of an earlier version: it may be the one that runs. Unless all has ended."""
    old = Process(SAID.name)
    assert not has_ended(pod(runs(LATER), ended(LATER)), old)
    assert has_ended({"status": {"phase": "Failed"}}, old)


def test_a_pod_tells_of_an_end_when_a_process_has_ended_or_all_have() -> None:
    telling = pod(ended(TEN)), pod(runs(TEN), ended(TEN)), {"status": {"phase": "Succeeded"}}
    assert all(map(tells_of_an_end, telling))
    assert not any(map(tells_of_an_end, (pod(runs(TEN)), {"metadata": {}}, pod(WAITS))))
