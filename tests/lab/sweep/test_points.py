"""A point gives the same wherever it runs."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.lab.sweep.points import WALK, point

from binwright.lab.sweep.points import Point, PointResult, run_point, run_points
from binwright.protocol.errors import StreamError
from binwright.streams import streams
from binwright.streams.generated import generate


def test_a_point_and_its_result_are_read_back_as_they_were() -> None:
    one = point(30, "sticky")
    assert Point.decode(one.encode()) == one
    found = run_point(one)
    assert PointResult.decode(found.encode()) == found


def test_processes_give_what_one_process_gives() -> None:
    points = [point(s, packing) for s in (30, 60) for packing in ("sticky", "mwf")]
    done: list[int] = []
    assert run_points(points, done.append, 2) == run_points(points, lambda _: None, 1)
    assert sum(done) == len(points)


def test_a_file_gives_what_its_walk_gives(tmp_path: Path) -> None:
    file = tmp_path / "walk.json"
    streams.write(file, list(generate(WALK)))
    drawn, read = run_point(point(30, "sticky")), run_point(point(30, "sticky", file=file))
    assert drawn == read
    elsewhere = replace(point(30, "sticky").load, walk=None, file=Path("/nowhere/walk.json"))
    assert elsewhere.open(tmp_path).load(0.0).edges == elsewhere.open(tmp_path).load(0.0).edges
    with pytest.raises(StreamError, match=r"/nowhere/walk\.json"):
        elsewhere.open()
