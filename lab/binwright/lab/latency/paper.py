"""What the paper and its recorded stream give, to compare with.

Landau, Andrade, Barbosa, arXiv 2402.06085, Figures 5 to 8: kd_n and MWF over a stream of 32
partitions and 100 measurements. The stream was recorded, but is not part of this project; the
values were computed from it by an independent implementation. They hold for the paper's parameters
alone. Ties are broken at random in the paper's own runs, so the packings have ranges, or means of
five ways to break them.
"""

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib.resources import files
from typing import Any, Final

from binwright.lab.latency.queues import LatencyModel
from binwright.protocol.model import TopicPartition
from binwright.recordings.streams import Stream

_FOUND: Final[Mapping[str, Any]] = json.loads(
    (files("binwright.lab.latency") / "paper.json").read_bytes()
)
KAFKA: Final[Mapping[str, Mapping[str, float | None]]] = _FOUND["kafka"]
"""kd_n -> samples above 0, percentiles and maximum in seconds; None: there is no such sample."""
PACKINGS: Final[Mapping[str, Mapping[str, float]]] = _FOUND["packings"]
"""Each of the twelve -> means of five ways to break ties."""
PACKINGS_P90_S: Final[tuple[float, float]] = tuple(_FOUND["packings_p90_above_zero_s"])
"""Between which the 90th percentile of the samples above 0 is with each of the twelve, seconds."""
MWF_RANGES: Final[Mapping[str, tuple[float, float]]] = _FOUND["mwf_ranges"]
"""The least and the most of 400 ways to break ties."""
RATES_SHA256: Final[str] = _FOUND["rates_sha256"]
"""Of the recorded stream. See `rates_sha256`."""
TOTAL: Final[int] = _FOUND["total"]
"""Samples of each packing."""
P90_S: Final[float] = _FOUND["headlines"]["mwf_p90_above_zero_s"]
"""The paper's 90th percentile of MWF's samples above 0, seconds."""
MORE_CONSUMERS: Final[float] = _FOUND["headlines"]["more_consumers"]
"""The paper's share of consumers that kd_n needs in addition to be better than MWF."""
MODEL = LatencyModel()
PARTITIONS, ROWS, DELTA = 32, 100, 5
"""Of its stream: two topics of 16 partitions; 100 measurements; largest step, per cent."""


def is_recorded(stream: Stream) -> bool:
    """Return whether a stream has the rates of the recorded one, whatever its topics are called."""
    return rates_sha256(stream) == RATES_SHA256


def rates_sha256(stream: Sequence[Mapping[TopicPartition, float]]) -> str:
    """Return the SHA-256 of a stream's rates, row by row, in the order of partitions."""
    rates = [[float(row[partition]) for partition in sorted(row)] for row in stream]
    return sha256(json.dumps(rates).encode()).hexdigest()
