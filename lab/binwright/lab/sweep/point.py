"""One point of a sweep: a policy under some settings on one load. It can run on any machine."""

import base64
import json
import pickle
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from pyspark.core.files import SparkFiles

from binwright.controller.decide.group import ControllerConfig
from binwright.lab.simulation.outcome import Score
from binwright.lab.simulation.run import Run, run
from binwright.lab.simulation.scenario import Scenario, Timing, warm_up_s
from binwright.lab.simulation.sources import Source, from_file, generated
from binwright.protocol.model import BytesPerSecond
from binwright.recordings.generated import Walk


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Where the load comes from: a file, or else a random walk.

    Attributes:
        label: What it is called in the results.
        capacity: 100 per cent of a stream, bytes/s.
        row_s: The length of a stream's row, seconds; None: as `sources.from_file` has it.
        walk: Drawn where the point runs.
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
    load: Load
    config: ControllerConfig
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
        found = pickle.loads(base64.b64decode(text))  # noqa: S301 - our own text, see above
        assert isinstance(found, cls)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
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
        found = json.loads(text)
        return cls(label=found["label"], load=found["load"], score=Score(**found["score"]))


def run_point(point: Point, directory: Path | None = None) -> Result:
    """Simulate a point; raise `UserError` if its load is malformed.

    Args:
        point: What is simulated.
        directory: See `Load.open`.
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
    return Result(
        label=point.label, load=point.load.label, score=run(job).score(point.sla_s, point.price)
    )


def run_encoded(text: str) -> str:
    """Simulate a point given as text, with the files that Spark brought; return the result."""
    return run_point(Point.decode(text), Path(SparkFiles.getRootDirectory())).encode()
