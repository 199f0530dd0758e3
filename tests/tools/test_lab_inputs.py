"""The sums of the lab's published inputs tell them from other files."""

from pathlib import Path

import pytest
import typer
from tools.lab_inputs import STREAM, WORKLOAD, lab_inputs

from binwright.lab.slo import workloads
from binwright.protocol.errors import StreamError
from binwright.streams.generated import Walk, generate
from binwright.streams.streams import write

RECORDED = Path(__file__).parents[3] / "shared" / "data" / "measurements_5.json"


def test_without_a_file_both_sources_and_all_sums_are_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lab_inputs()
    shown = capsys.readouterr().out
    assert "arXiv 2402.06085" in shown
    assert "DOI 10.13012/J8PN93H8" in shown
    for value in (*STREAM.sums.values(), *WORKLOAD.sums.values()):
        assert value in shown


@pytest.mark.skipif(not RECORDED.exists(), reason="the recorded stream has no licence: not here")
def test_the_recorded_stream_has_its_sums() -> None:
    lab_inputs(RECORDED)


def test_another_stream_of_the_same_size_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.json"
    write(other, generate(Walk(topics=("one", "two"), partitions=16, rows=100, delta=5, seed=0)))
    with pytest.raises(typer.Exit) as ended:
        lab_inputs(other)
    assert ended.value.exit_code == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["rows: 100, as expected", "partitions: 32, as expected"]
    assert "NOT fbd93e94" in lines[2]


def test_the_stand_in_has_the_sums_of_the_workload_and_fails_all_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in = tmp_path / "w2.csv"
    stand_in.write_text("\n".join(map(str, workloads.second().events)))
    with pytest.raises(typer.Exit):
        lab_inputs(stand_in)
    lines = capsys.readouterr().out.splitlines()
    assert [line.rpartition(", ")[2] for line in lines] == [*["as expected"] * 3, "NOT no"]


def test_a_file_that_is_neither_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text("no stream")
    with pytest.raises(StreamError):
        lab_inputs(other)
