"""What an experiment tells: a section of the lab's report, with its tables and charts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure  # a second of CPU: only where charts are made

Cell = str | int | float | None
"""A number is shown as it is: round it first. None: nothing to show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportTable:
    """Rows under named columns; also a CSV file."""

    name: str  # of its file, without a suffix: letters, digits and hyphens
    title: str
    columns: Sequence[str]  # with units
    rows: Sequence[Sequence[Cell]]  # each as long as `columns`
    note: str = ""

    def __post_init__(self) -> None:
        """Raise `ValueError` for a row of another length."""
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"{self.name}: {len(row)} cells for {len(self.columns)} columns")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A figure with its caption; also an SVG and a PNG file."""

    name: str  # of its files, without a suffix
    caption: str
    figure: "Figure"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedComparison:
    """What a section has of a published figure or table."""

    of: str  # as `publications` calls it
    ours: Sequence[str]  # names of the section's charts and tables
    difference: str  # between ours and what was published, in numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSection:
    """One experiment: its source, what it should give, what it gave."""

    title: str
    source: str  # the publication, and its figures and tables
    expected: str
    seen: str  # with the differences, in numbers
    tables: Sequence[ReportTable] = ()
    charts: Sequence[Chart] = ()
    publication: str = ""  # the key of the publication that `comparisons` are of
    comparisons: Sequence[PublishedComparison] = ()
