"""`binwright table erase`: what it orders, and the receipt."""

import pytest

from binwright.look.commands.erase import checked, receipt
from binwright.look.work_texts import operation_text, records_text
from binwright.protocol.errors import UserError
from binwright.protocol.metadata import TableOperation

DONE = TableOperation(
    id="1",
    work="erase",
    by="ann",
    reason="asked to",
    state="done",
    erased=3,
    bad_erased=1,
    ended_ms=1_000,
    files_until_ms=604_801_000,
)


def test_a_condition_is_checked_before_it_is_ordered() -> None:
    assert checked("--where", "") == ""
    assert checked("--where", "id = 5") == "id = 5"
    for text, fault in (("id = now()", "--where: .*no now"), ("i" * 10_001, "at most 10000")):
        with pytest.raises(UserError, match=fault):
            checked("--where", text)


def test_a_receipt_has_counts_and_the_times_of_deletion_and_of_the_vacuum() -> None:
    what, when, until = receipt("orders", DONE)
    assert what == (
        "the table orders: 3 rows erased, 1 bad records, "
        "in older versions until 1970-01-08 00:00:01 UTC"
    )
    assert when == "erased at 1970-01-01 00:00:01 UTC by ann (asked to), as 1"
    assert "until 1970-01-08 00:00:01 UTC" in until
    assert "Kafka keeps the records" in until


def test_bad_records_that_were_not_looked_at_are_counted() -> None:
    would = TableOperation(id="1", work="erase", by="ann", state="done", dry_run=True, bad_left=4)
    what, left = receipt("orders", would)
    assert what.endswith("0 rows to erase, 0 bad records, 4 bad records not looked at")
    assert "--bad-where" in left


def test_describe_has_the_receipt() -> None:
    text = operation_text(DONE)
    assert text.startswith("erase by ann: asked to; done; 3 rows erased")
    assert records_text(DONE) in text
    assert DONE.outcomes == {"erased": 3, "bad_erased": 1, "bad_left": 0}
