"""The lines of Python on the page of the lab do what the lab does."""

import pytest

from binwright.lab.packing.experiments import Experiment, PackingStream, decisions
from binwright.packing.score import rscore
from binwright.protocol.model import BytesPerSecond

from .pages import ROOT, blocks

PAGE = ROOT / "docs" / "how-to" / "lab.md"


def test_the_lines_pack_a_stream_as_the_lab_does(capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = (each for each in blocks("python") if each.page == PAGE)
    exec(compile(block.text, str(block), "exec"), {})  # noqa: S102 - a reader runs them, too
    shown = [line.split() for line in capsys.readouterr().out.splitlines()]

    source = PackingStream(label="page", partitions=32, rows=100, delta=5, seed=7)
    capacity = BytesPerSecond(100.0)
    wanted = [
        (len({*one.target.values()}), rscore(one.rates, capacity, one.current, one.target))
        for one in decisions(Experiment("mwf", source))
    ]
    assert len(wanted) == 100
    assert [int(consumers) for consumers, _ in shown] == [consumers for consumers, _ in wanted]
    assert [float(score) for _, score in shown] == pytest.approx([score for _, score in wanted])
