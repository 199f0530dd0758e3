"""What the end of a run says."""

from dataclasses import replace
from pathlib import Path

from rich.console import Console
from tests.chaos.__main__ import show
from tests.chaos.scenario import Scenario, ScenarioOptions, Suffered, stream, without_bombs
from tests.chaos.system_settings import CAPACITY, LIMIT
from tests.inspect.audits import partition_audit

from binwright.inspect.audit import AuditResult, PartitionAudit, TableAudit
from binwright.inspect.topic_extents import Range
from binwright.protocol.model import TopicPartition

P = TopicPartition("orders", 0)
PARTITION = partition_audit(partition=0, rows=9, lost=1, lost_ranges=(Range(4, 4),))


def audited(partition: PartitionAudit) -> AuditResult:
    return AuditResult(
        tables=(
            TableAudit(
                topic="orders", name="orders", path="", exists=True, partitions=(partition,)
            ),
        )
    )


def test_a_record_that_no_consumer_can_decode_is_not_lost() -> None:
    assert not audited(PARTITION).clean
    assert without_bombs(audited(PARTITION), [(P, 4)]).clean


def test_any_other_record_without_a_row_is_lost() -> None:
    assert not without_bombs(audited(PARTITION), [(P, 5)]).clean
    assert not without_bombs(audited(PARTITION), [(TopicPartition("clicks", 0), 4)]).clean
    two = replace(PARTITION, lost=2, lost_ranges=(Range(4, 5),))
    assert not without_bombs(audited(two), [(P, 4)]).clean


def test_the_summary_shows_in_which_commit_a_fault_struck(tmp_path: Path) -> None:
    course = Scenario(ScenarioOptions(), tmp_path, print)
    course.injected_faults.append(
        Suffered(
            fault="kill of a consumer during lake.commit",
            call="lake.add_files",
            at_s=1.0,
            lasted_s=1.0,
            recovery_s=1.0,
            victim=7,
            beside=0,
            others_s=None,
        )
    )
    console = Console(width=200)
    with console.capture() as printed:
        console.print(show(course))
    assert "during lake.commit (lake.add_files)" in printed.get()


def test_many_partitions_share_the_load_of_eight() -> None:
    few = [TopicPartition("orders", n) for n in range(8)]
    many = [TopicPartition("orders", n) for n in range(80)]
    means = [sum(sum(row.values()) for row in stream(1, each)) for each in (few, many)]
    assert 0.9 < means[0] / means[1] < 1.1


def test_a_hot_partition_is_the_first_and_gets_twice_the_limit() -> None:
    partitions = [TopicPartition("orders", n) for n in range(8)]
    rows = stream(1, partitions, hot=True)
    assert {row[partitions[0]] * CAPACITY / 100 for row in rows} == {2 * LIMIT}
    others = [rate for row in rows for p, rate in row.items() if p != partitions[0]]
    assert max(others) < 20
