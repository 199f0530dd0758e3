"""What a load has written, for people and for programs."""

from dataclasses import replace

from binwright.cli.terminal import Console
from binwright.protocol.model import TopicPartition
from binwright.streams.commands.load import show, to_json
from binwright.streams.load import LoadResult, Sent

RESULT = LoadResult(
    partitions={
        TopicPartition("a", 0): Sent(records=99, bytes=99_000, due_bytes=100_000),
        TopicPartition("a", 1): Sent(records=1_000, bytes=1_000_000, due_bytes=1_000_500),
        TopicPartition("b", 0): Sent(records=0, bytes=0, due_bytes=0),
    },
    rows=3,
    elapsed_s=61.2,
    shed_bytes=0,
)


def text(result: LoadResult) -> str:
    console = Console(width=120)
    with console.capture() as captured:
        console.print(show(result))
    return captured.get()


def test_each_topic_has_what_was_due_and_what_was_written() -> None:
    page = text(RESULT)
    assert "1,099 records in 61 s: 1.1 MB" in page
    (line,) = (line for line in page.splitlines() if line.startswith("│ a"))
    cells = [cell.strip() for cell in line.strip("│").split("│")]
    assert cells == ["a", "2", "1,099", "1.1 MB", "1.1 MB", "99.0 %"]


def test_what_was_not_written_is_reported() -> None:
    assert "not written" not in text(RESULT)
    late = text(replace(RESULT, shed_bytes=2_500_000))
    assert "2.5 MB were due and not written" in late


def test_the_json_has_every_partition() -> None:
    figures = to_json(RESULT)
    assert figures["partitions"]["a-0"] == {"records": 99, "bytes": 99_000, "due_bytes": 100_000}
    assert (figures["rows"], figures["elapsed_s"], figures["shed_bytes"]) == (3, 61.2, 0)
