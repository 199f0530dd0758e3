"""`binwright table backfill`: what it orders, and what it says of what its writer reports."""

import pytest

from binwright.look.commands.backfill import begin_of
from binwright.look.work_texts import operation_text, records_text
from binwright.protocol.errors import SettingsError, UserError
from binwright.protocol.metadata import TableOperation
from binwright.protocol.model import TopicPartition

NOW_MS = 1_795_953_600_000  # 2026-11-29 12:00 UTC
RUNNING = TableOperation(
    id="1", work="backfill", by="ann", state="running", rows=5, bad=1, to_go=90
)


def test_from_takes_the_earliest_a_time_or_offsets() -> None:
    assert begin_of("earliest", NOW_MS) == (0, {})
    assert begin_of("2h", NOW_MS) == (NOW_MS - 7_200_000, {})
    offsets = {TopicPartition("or-ders", 0): 12, TopicPartition("or-ders", 3): 0}
    assert begin_of("or-ders-0=12, or-ders-3=0", NOW_MS) == (0, offsets)


@pytest.mark.parametrize(
    "text", ["orders=5", "orders-0=", "orders-0=-1", "orders-0=x", "=", "a-0=1,"]
)
def test_what_are_no_offsets_is_refused(text: str) -> None:
    with pytest.raises(UserError, match=r"--from: .* expected earliest"):
        begin_of(text, NOW_MS)


def test_what_is_no_time_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"--from: 'yesterday' is no time.*; else earliest"):
        begin_of("yesterday", NOW_MS)


def test_what_would_order_something_else_is_refused() -> None:
    with pytest.raises(UserError, match="--from is empty: expected earliest"):
        begin_of("", NOW_MS)
    with pytest.raises(UserError, match="orders-0 is named twice"):
        begin_of("orders-0=1,orders-0=2", NOW_MS)


def test_counts_have_what_became_of_records_and_what_is_left() -> None:
    assert records_text(RUNNING) == "5 rows back-filled, 1 bad records, 90 offsets to go"
    done = TableOperation(id="1", work="backfill", state="done", rows=5, skipped=2, gone=3)
    assert records_text(done) == (
        "5 rows back-filled, 0 bad records, 2 skipped, 3 offsets left out, "
        "which Kafka has no more, or whose log was cut"
    )
    assert RUNNING.outcomes == {"rows": 5, "bad": 1, "skipped": 0, "gone": 0, "to_go": 90}
    would = TableOperation(id="1", work="backfill", state="done", dry_run=True, to_go=9)
    assert records_text(would) == "9 offsets to back-fill"
    assert "backfill by ann" in operation_text(RUNNING)


def test_work_of_a_later_version_has_no_counts_that_are_known() -> None:
    assert records_text(TableOperation(id="1", work="unheard of", state="running")) == ""
