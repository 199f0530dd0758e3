"""The paper's packings on generated streams: decisions that stay as they are, and why.

`tests/packing/test_packing.py` compares with the paper's recorded stream where it is.
"""

import json
from typing import Any

import pytest
from tests.packing.golden import (
    CAPACITY,
    FILE,
    NAMES,
    STREAMS,
    decisions,
    packed_by,
    rates_of,
    summary,
)
from tests.packing.packings import fewest_consumers
from tests.scans import by_scanning

from binwright.packing.catalogue import PAPER
from binwright.packing.score import rscore

GOLDEN: dict[str, dict[str, dict[str, Any]]] = json.loads(FILE.read_bytes())
MODIFIED = {"mwf": "wfd", "mwfp": "wfd", "mbf": "bfd", "mbfp": "bfd"}


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("name", NAMES)
def test_each_packing_decides_as_before(name: str, stream: str) -> None:
    """Every owner of every partition; `python -m tests.packing.golden` prints the values."""
    assert summary(packed_by(name), stream) == GOLDEN[stream][name]


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("name", PAPER)
def test_plain_scans_by_the_papers_rules_decide_the_same(name: str, stream: str) -> None:
    """So the values are the paper's, not only ours."""
    found = summary(
        lambda number, rates, current: by_scanning(name, rates, CAPACITY, current, number), stream
    )

    assert found == GOLDEN[stream][name]


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("name", NAMES)
def test_the_rscores_are_the_moved_rates(name: str, stream: str) -> None:
    made = decisions(packed_by(name), stream)
    scores = [rscore(rates, CAPACITY, current, target) for rates, current, target in made]

    assert scores[0] == 0
    assert sum(scores) == pytest.approx(GOLDEN[stream][name]["moved_rate"] / 100)


@pytest.mark.parametrize("stream", STREAMS)
def test_the_sums_are_in_the_papers_order(stream: str) -> None:
    """BFD needs the fewest consumers, next fit the most, and MWF moves the least of the twelve."""
    found = GOLDEN[stream]
    fewest = sum(fewest_consumers(rates, CAPACITY) for rates in rates_of(stream))
    consumers = {name: found[name]["consumers"] for name in PAPER}
    moved = {name: found[name]["moved_rate"] for name in PAPER}

    assert fewest <= consumers["bfd"] == min(consumers.values())
    assert consumers["nf"] == max(consumers.values())
    assert moved["mwf"] == min(moved.values())
    assert found["kd_15"]["moves"] == 0


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("name", MODIFIED)
def test_a_modified_packing_begins_as_its_classical_one(name: str, stream: str) -> None:
    """With no current owners MWF and MWFP are WFD, MBF and MBFP are BFD."""
    (_, _, first), *_ = decisions(packed_by(name), stream)
    (_, _, classical), *_ = decisions(packed_by(MODIFIED[name]), stream)

    assert len(set(first.values())) == len(set(classical.values()))
