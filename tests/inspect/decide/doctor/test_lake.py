"""Staging, Spark and the registry: what keeps rows from landing is a fault."""

from collections.abc import Iterable

import pytest

from binwright.inspect.decide.doctor.findings import Finding
from binwright.inspect.decide.doctor.lake import (
    Delta,
    Spark,
    StagingProbe,
    probe_seen,
    spark,
    staging,
    subjects,
)

SERVER = "sc://spark:15002"


def statuses(findings: Iterable[Finding]) -> list[str]:
    return [each.status for each in findings]


def test_a_location_that_cannot_be_written_is_a_fault() -> None:
    (found,) = staging(StagingProbe("/lake", "cannot be written"), 2)
    assert (found.status, found.what) == ("fault", "cannot be written")


def test_a_location_that_can_be_written_is_fine_and_may_have_to_be_made() -> None:
    (there,) = staging(StagingProbe("s3://lake"), 2)
    (made, room) = staging(
        StagingProbe("/lake", created=True, free_bytes=2_000_000_000), 2_000_000_000
    )
    assert there.what == "s3://lake can be written"
    assert made.what.endswith("(it does not exist yet, and can be made)")
    assert (room.status, room.what[:16]) == ("ok", "2.0 GB are free ")


def test_less_room_than_one_consumer_may_stage_is_a_warning() -> None:
    found = [*staging(StagingProbe("/lake", free_bytes=1_999_999_999), 2_000_000_000)]
    assert statuses(found) == ["ok", "warning"]
    assert "staging.max_bytes" in found[1].what


@pytest.mark.parametrize(
    ("version", "status"),
    [("4.2.0", "ok"), ("4.0.7", "ok"), ("4.3.0", "warning"), ("3.5.4", "fault")],
)
def test_a_release_that_no_test_runs_on_is_a_warning_and_another_generation_a_fault(
    version: str, status: str
) -> None:
    (found,) = spark(SERVER, Spark(version, "ready", 0.0))
    assert found.status == status
    assert f"Spark {version}" in found.what


@pytest.mark.parametrize(
    ("delta", "words"), [("missing", "no Delta Lake"), ("not set up", "not set up for it")]
)
def test_a_server_without_delta_is_a_fault(delta: Delta, words: str) -> None:
    found = [*spark(SERVER, Spark("4.2.0", delta, 0.0))]
    assert statuses(found) == ["ok", "fault"]
    assert words in found[1].what


def test_why_a_server_appends_is_a_warning_unless_it_is_to() -> None:
    (_, in_place) = spark(SERVER, Spark("4.2.0", "ready", 0.0, ""))
    (_, appends) = spark(SERVER, Spark("4.0.1", "ready", 0.0, "it has Delta 4.0.1"))
    assert (in_place.status, in_place.what) == ("ok", "staged files as they are")
    assert (appends.status, appends.check) == ("warning", f"spark {SERVER} commits")
    assert "it has Delta 4.0.1" in appends.what
    assert statuses(spark(SERVER, Spark("4.2.0", "ready", 0.0, None))) == ["ok"]


@pytest.mark.parametrize(("ahead_s", "words"), [(61.0, "61 s ahead of"), (-90.0, "90 s behind")])
def test_a_clock_that_differs_by_more_than_a_minute_is_a_warning(
    ahead_s: float, words: str
) -> None:
    found = [*spark(SERVER, Spark("4.2.0", "ready", ahead_s))]
    assert statuses(found) == ["ok", "warning"]
    assert words in found[1].what
    assert statuses(spark(SERVER, Spark("4.2.0", "ready", 60.0))) == ["ok"]


def test_a_server_has_to_read_what_was_written_here() -> None:
    assert probe_seen(SERVER, "/lake/p", "abc", "abc", "").status == "ok"
    missing = probe_seen(SERVER, "/lake/p", "abc", "", "PATH_NOT_FOUND")
    other = probe_seen(SERVER, "/lake/p", "abc", "xyz", "")
    assert missing.status == other.status == "fault"
    assert missing.what.endswith("PATH_NOT_FOUND")
    assert "another file" in other.what


def test_a_subject_without_versions_is_a_fault() -> None:
    found = [*subjects({"b-value": 0, "a-value": 2})]
    assert [(each.check, each.status) for each in found] == [
        ("registry subject a-value", "ok"),
        ("registry subject b-value", "fault"),
    ]
    (empty,) = subjects({})
    assert (empty.check, empty.status) == ("registry", "ok")
