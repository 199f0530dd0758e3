"""Verdicts of an audit; `tests/integration/audit` runs it on a real Kafka and Spark."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from tests.inspect.audits import partition_audit

from binwright.inspect.audit import AuditResult, PartitionAudit, TableAudit, audit
from binwright.inspect.metrics import audit_samples
from binwright.inspect.topic_extents import MAX_LISTED, Range, Tally, open_topic_extents
from binwright.lake.lake_reader import lake_reader
from binwright.protocol.errors import BrokerUnavailable, LakeUnavailable
from binwright.runtime.settings.consumer import LakeSettings
from binwright.runtime.settings.kafka import KafkaSettings

CLEAN = partition_audit()


def table_of(*partitions: PartitionAudit, exists: bool = True) -> TableAudit:
    return TableAudit(
        topic="orders", name="orders", path="/lake/orders", exists=exists, partitions=partitions
    )


# --- verdicts ----------------------------------------------------------------------------------


def test_faults_of_a_table_with_a_name_of_its_own_have_it() -> None:
    lost = partition_audit(lost=1, lost_ranges=(Range(4, 4),))
    named = replace(table_of(lost), name="orders_raw")
    assert named.faults() == ("orders_raw: orders-3: 1 missing (4)",)
    assert table_of(lost).faults() == ("orders-3: 1 missing (4)",)


def test_every_record_once_and_nothing_else_is_clean() -> None:
    result = AuditResult(tables=(table_of(CLEAN),))

    assert result.clean
    assert result.rows == 10
    assert result.faults() == ()


@pytest.mark.parametrize(
    ("found", "fault"),
    [
        (
            replace(CLEAN, lost=4, lost_ranges=(Range(1, 3), Range(7, 7))),
            "orders-3: 4 missing (1-3, 7)",
        ),
        (replace(CLEAN, unread=5), "orders-3: 5 without a row that could not be checked in time"),
        (replace(CLEAN, surplus=3, doubles=(2, 5)), "orders-3: 3 too many (2, 5)"),
        (replace(CLEAN, beyond=1), "orders-3: 1 beyond the topic's end (10)"),
        (
            replace(CLEAN, stale=2, stale_offsets=(3, 5)),
            "orders-3: 2 not of the newest change of their key (3, 5)",
        ),
        (
            replace(CLEAN, lost_to_retention=4, gone_ranges=(Range(2, 5),)),
            "orders-3: 4 without a row, and the topic no longer keeps them (2-5)",
        ),
    ],
)
def test_each_fault_is_not_clean_and_named(found: PartitionAudit, fault: str) -> None:
    result = AuditResult(tables=(table_of(CLEAN, found),))

    assert not result.clean
    assert result.faults() == (fault,)


def test_a_table_whose_rows_cannot_be_assigned_to_logs_is_not_clean() -> None:
    table = replace(table_of(CLEAN), unchecked="version 3 can no longer be read")

    assert not table.clean
    assert table.faults() == (
        "orders: rows of earlier logs cannot be told apart: version 3 can no longer be read",
    )


def test_rows_that_name_no_record_are_a_fault() -> None:
    table = replace(table_of(CLEAN), unplaced=2)

    assert not table.clean
    assert table.faults() == ("orders: 2 rows have no topic, partition or offset",)


def test_metrics_count_what_is_missing_and_what_is_too_many() -> None:
    wrong = replace(CLEAN, lost=2, lost_to_retention=3, unread=4, surplus=5, beyond=6, stale=8)
    result = AuditResult(tables=(replace(table_of(wrong), unplaced=7), table_of(exists=False)))
    samples = {(each.name, each.labels.get("partition")): each for each in audit_samples(result, 9)}

    of_table = {"topic": "orders", "table": "orders"}
    assert samples["binwright_audit_time_seconds", None].value == 9
    missing = samples["binwright_audit_missing_records", "3"]
    assert (missing.value, missing.labels) == (9, {**of_table, "partition": "3"})
    assert samples["binwright_audit_surplus_rows", "3"].value == 5
    assert samples["binwright_audit_beyond_rows", "3"].value == 6
    assert samples["binwright_audit_stale_rows", "3"].value == 8
    clean = [s.value for s in audit_samples(result, 9) if s.name == "binwright_audit_clean"]
    assert clean == [0, 0]


def test_rows_of_earlier_logs_and_offsets_without_a_row_are_remarks() -> None:
    table = table_of(
        replace(CLEAN, earlier=5, vanished=2, not_landed=7, skipped=3),
        replace(CLEAN, earlier=1, rewritten=3, skipped=1),
    )

    assert table.clean
    assert AuditResult(tables=(table,)).remarks() == (
        "orders: 6 rows are of an earlier topic of this name",
        "orders: 3 rows are of what the log was before it was cut",
        "orders: 2 offsets without a row, as transactions, compaction or settings leave them",
        "orders: 4 records are skipped, as the settings want",
        "orders: 7 offsets are gone from the topic and have not landed: staged, or lost",
    )


def test_bad_records_are_counted_among_the_rows_and_remarked() -> None:
    result = AuditResult(tables=(table_of(CLEAN, replace(CLEAN, bad=2), replace(CLEAN, bad=1)),))

    assert result.clean
    assert (result.rows, result.bad, result.to_json()["bad"]) == (30, 3, 3)
    assert result.remarks() == ("orders: 3 rows are bad records, in /lake/orders__bad",)


def test_a_list_that_is_cut_ends_with_dots() -> None:
    ranges = tuple(Range(number * 2, number * 2) for number in range(MAX_LISTED))
    (fault,) = replace(CLEAN, lost=99, lost_ranges=ranges).faults()

    assert fault.endswith("36, 38, ...)")


def test_a_missing_table_is_named_even_if_its_topic_is_empty() -> None:
    table = table_of(exists=False)

    assert table.clean
    assert table.faults() == ("orders: there is no table at /lake/orders",)


def test_the_json_holds_the_verdicts() -> None:
    wrong = replace(CLEAN, lost=2, lost_ranges=(Range(4, 5),))
    result = json.loads(json.dumps(AuditResult(tables=(table_of(CLEAN, wrong),)).to_json()))

    assert (result["clean"], result["rows"]) == (False, 20)
    (table,) = result["tables"]
    assert (table["topic"], table["exists"], table["clean"]) == ("orders", True, False)
    assert [p["clean"] for p in table["partitions"]] == [True, False]
    assert table["partitions"][1]["lost_ranges"] == [{"first": 4, "last": 5}]


# --- tallies -----------------------------------------------------------------------------------


def test_consecutive_offsets_are_one_range() -> None:
    tally = Tally()
    for offset in (0, 1, 2, 7, 9, 10):
        tally.add(offset)

    assert tally.count == 6
    assert tally.ranges == [Range(0, 2), Range(7, 7), Range(9, 10)]
    assert list(map(len, tally.ranges)) == [3, 1, 2]


def test_only_the_first_ranges_are_listed_but_all_offsets_are_counted() -> None:
    tally = Tally()
    for number in range(MAX_LISTED + 5):
        tally.add(number * 10)
        tally.add(number * 10 + 1)

    assert tally.count == 2 * (MAX_LISTED + 5)
    assert tally.ranges == [Range(n * 10, n * 10 + 1) for n in range(MAX_LISTED)]


# --- servers that are away ----------------------------------------------------------------------


@asynccontextmanager
async def silent_server() -> AsyncIterator[str]:
    """A server that accepts connections and sends nothing."""
    stopped = asyncio.Event()

    async def listen(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await stopped.wait()
        writer.close()

    server = await asyncio.start_server(listen, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    try:
        yield f"{host}:{port}"
    finally:
        stopped.set()
        server.close()


async def test_an_unreachable_spark_is_reported_with_what_to_check(unused_tcp_port: int) -> None:
    url = f"sc://127.0.0.1:{unused_tcp_port}"
    with pytest.raises(LakeUnavailable, match=rf"{url}: .*Check that it runs, and that lake.spark"):
        async with lake_reader(url):
            pytest.fail("opened")


async def test_a_silent_spark_is_abandoned_after_the_timeout() -> None:
    async with silent_server() as address:
        with pytest.raises(LakeUnavailable, match=r"open a session: no answer within 0.5 s"):
            async with asyncio.timeout(30), lake_reader(f"sc://{address}", query_s=0.5):
                pytest.fail("opened")


async def test_an_unreachable_broker_is_reported_with_what_to_check(unused_tcp_port: int) -> None:
    kafka = KafkaSettings(bootstrap_servers=f"127.0.0.1:{unused_tcp_port}", request_timeout_s=1)
    with pytest.raises(BrokerUnavailable, match=rf"127.0.0.1:{unused_tcp_port}.*Check that"):
        await audit(["orders"], kafka, LakeSettings())


async def test_a_silent_broker_is_abandoned_after_the_timeout() -> None:
    async with silent_server() as address:
        kafka = KafkaSettings(bootstrap_servers=address, request_timeout_s=0.5)
        with pytest.raises(BrokerUnavailable):
            async with asyncio.timeout(30), open_topic_extents(kafka, "read_committed"):
                pytest.fail("opened")
