"""The points of a sweep: a policy under some settings on one load each, run on any machine."""

import base64
import json
import pickle
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from binwright.group.config import GroupConfig
from binwright.lab.processes import OnProgress, run_all
from binwright.lab.simulation.outcome import Score
from binwright.lab.simulation.run import Run, run
from binwright.lab.simulation.scenario import Scenario, Timing, warm_up_s
from binwright.lab.simulation.sources import Source, from_file, generated
from binwright.lab.spark_tasks import run_on_spark
from binwright.protocol.model import BytesPerSecond
from binwright.streams.generated import Walk


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepLoad:
    """Where the load comes from: a file, or else a random walk.

    Attributes:
        label: What it is called in the results.
        capacity: 100 per cent of a stream, bytes/s.
        row_s: The length of a stream's row, seconds; None: as `sources.from_file` has it.
        walk: Generated where the point runs.
        file: Of a stream or a recording.
    """

    label: str
    capacity: BytesPerSecond
    row_s: float | None = None
    walk: Walk | None = None
    file: Path | None = None

    def open(self, directory: Path | None = None) -> Source:
        """Read or draw it.

        Args:
            directory: Of the file, if it is not where it was named.

        Raises:
            StreamError: The file is neither a stream nor a recording.
        """
        if self.walk is not None:
            return generated(self.walk, self.capacity, self.row_s)
        assert self.file is not None  # one of the two is given
        path = self.file if directory is None else directory / self.file.name
        return from_file(path, self.capacity, self.row_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """What is simulated, without the load itself."""

    label: str  # the policy and the settings, the same for every load
    policy: str
    load: SweepLoad
    config: GroupConfig
    packing: str
    timing: Timing
    sustained: BytesPerSecond | None
    sla_s: float
    price: float | None = None

    def encode(self) -> str:
        """Return it as text, for another process of the same version."""
        return base64.b64encode(pickle.dumps(self)).decode("ascii")

    @classmethod
    def decode(cls, text: str) -> Self:
        """Read back what `encode` of this program gave; nothing else may be given."""
        point = pickle.loads(base64.b64decode(text))  # noqa: S301 - our own text, see above
        assert isinstance(point, cls)
        return point


@dataclass(frozen=True, slots=True, kw_only=True)
class PointResult:
    """A point's figures."""

    label: str
    load: str
    score: Score

    def encode(self) -> str:
        """Return it as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def decode(cls, text: str) -> Self:
        """Read it back."""
        fields = json.loads(text)
        return cls(label=fields["label"], load=fields["load"], score=Score(**fields["score"]))


def run_point(point: Point, directory: Path | None = None) -> PointResult:
    """Simulate a point; raise `UserError` if its load is malformed.

    Args:
        point: What is simulated.
        directory: See `SweepLoad.open`.
    """
    source = point.load.open(directory)
    scenario = Scenario(
        load=source.load(warm_up_s(point.config, point.timing)),
        config=point.config,
        sustained=point.sustained,
        timing=point.timing,
        published=source.published(point.timing.window_s),
    )
    job = Run(
        label=point.policy,
        policy=point.policy,
        scenario=scenario,
        packing=point.packing,
        sla_s=point.sla_s,
    )
    return PointResult(
        label=point.label, load=point.load.label, score=run(job).score(point.sla_s, point.price)
    )


def run_encoded(text: str) -> str:
    """Simulate a point given as text, with the files that Spark brought; return the result."""
    from pyspark.core.files import SparkFiles  # noqa: PLC0415 - where Spark runs it

    return run_point(Point.decode(text), Path(SparkFiles.getRootDirectory())).encode()


def run_points(
    points: Sequence[Point], on_progress: OnProgress, jobs: int, spark: str | None = None
) -> list[PointResult]:
    """Simulate all points; return their results in the same order.

    Args:
        points: Each independent of the others.
        on_progress: Called with the number of points that are done since the last call.
        jobs: Processes on this machine; 1: only this one.
        spark: A Spark Connect server, sc://HOST:PORT, that runs them instead, a task for each.

    Raises:
        UserError: A point names an unknown packing, or its load is malformed.
        LakeUnavailable: Spark failed.
    """
    if spark is None:
        return run_all(run_point, points, lambda _: on_progress(1), jobs)
    files = {point.load.file for point in points if point.load.file is not None}
    texts = [point.encode() for point in points]
    results = run_on_spark(run_encoded, texts, on_progress, spark, sorted(files))
    return [PointResult.decode(text) for text in results]
