"""When an object's status is written, and what it keeps."""

from typing import Any

import pytest
from structlog.testing import capture_logs

from binwright.kubernetes.objects import Obj
from binwright.kubernetes.status import APPROVE_ANNOTATION, Approvals, Condition, StatusWriter
from binwright.protocol.errors import BinwrightError, ClusterRefused, ClusterUnavailable, UserError

PATH = "/apis/it"
READY = Condition("Ready", holds=True, reason="AllRead")


class Writes:
    """An API server that stores statuses, or fails."""

    def __init__(self, failure: BinwrightError | None = None) -> None:
        self.statuses: list[Obj] = []
        self.failure = failure

    async def merge(self, path: str, body: Obj) -> None:
        if self.failure is not None:
            raise self.failure
        assert path == f"{PATH}/status"
        self.statuses.append(body["status"])


def writer(api: Any, was: Obj | None = None) -> StatusWriter:
    return StatusWriter(api, PATH, 7, was or {})


async def test_a_status_is_written_when_it_has_changed() -> None:
    api = Writes()
    status = writer(api)
    for lag in (1, 1, 2):
        await status.write({"lag": lag}, READY)
    assert [(s["lag"], s["observedGeneration"]) for s in api.statuses] == [(1, 7), (2, 7)]


async def test_a_condition_keeps_the_time_since_which_it_holds() -> None:
    since = "2026-01-01T00:00:00Z"
    was = {"type": "Ready", "status": "True", "lastTransitionTime": since}
    api = Writes()
    status = writer(api, {"conditions": [was]})
    await status.write({}, READY)
    await status.write({}, Condition("Ready", holds=False, reason="PartitionsUnread"))
    (still,), (later,) = (written["conditions"] for written in api.statuses)
    assert (still["status"], still["lastTransitionTime"]) == ("True", since)
    assert (later["status"], later["lastTransitionTime"] > since) == ("False", True)


@pytest.mark.parametrize(
    ("failure", "events"),
    [
        (ClusterUnavailable("no response"), ["status.unwritten"]),
        (ClusterRefused(403, "forbidden"), ["status.unwritten"]),
        (ClusterRefused(404, "the object was deleted"), []),
    ],
)
async def test_a_status_that_cannot_be_written_is_logged_unless_the_object_is_gone(
    failure: BinwrightError, events: list[str]
) -> None:
    with capture_logs() as logs:
        await writer(Writes(failure)).write_or_log({}, READY)
    assert [entry["event"] for entry in logs] == events


def test_an_annotation_is_new_until_it_was_handled() -> None:
    approvals = writer(Writes(), {"approvalSeen": "4"}).approvals
    annotated = {"metadata": {"annotations": {APPROVE_ANNOTATION: "5"}}}
    assert approvals.number(annotated, "plan") == 5
    approvals.handled(annotated)
    assert approvals.fields()["approvalSeen"] == "5"
    assert approvals.number(annotated, "plan") is None
    assert Approvals().number(None, "plan") is None
    assert Approvals().number({"metadata": {}}, "plan") is None


@pytest.mark.parametrize("value", ["yes", "²", ""])
def test_an_annotation_that_is_no_number_is_refused_once(value: str) -> None:
    approvals = Approvals()
    annotated = {"metadata": {"annotations": {APPROVE_ANNOTATION: value}}}
    with pytest.raises(UserError, match="expected a proposal's number, as in"):
        approvals.number(annotated, "proposal")
    assert approvals.number(annotated, "proposal") is None
