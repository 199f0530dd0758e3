"""What an experiment gives: a section of the lab's report, its tables, charts and comparisons."""

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
    figures: Sequence[str] = ()  # published figures and tables that it shows

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
    figures: Sequence[str] = ()  # published ones that it shows


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedComparison:
    """A published value beside ours: one form for all publications.

    Attributes:
        figure: The figure, table or section that it is published in, as `publications` calls it.
        what: What it is of.
        unit: Of all numbers.
        published: One number, or the least and the most of a range.
        ours: What was computed or measured here; None: it could not be.
        tolerance: How large a difference is expected to be at most; None: nothing is expected.
        remark: What else is to be known, as "known gap".
    """

    figure: str
    what: str
    unit: str
    published: float | tuple[float, float]
    ours: float | None
    tolerance: float | None = None
    remark: str = ""

    @property
    def difference(self) -> float | None:
        """Ours - published; of a range, from its nearer end, and 0 within it."""
        if self.ours is None:
            return None
        known = self.published
        least, most = known if isinstance(known, tuple) else (known, known)
        return self.ours - min(max(self.ours, least), most)

    @property
    def within(self) -> bool | None:
        """Whether the difference is within the tolerance; None: there is none of them."""
        gap = self.difference
        return None if gap is None or self.tolerance is None else abs(gap) <= self.tolerance


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSection:
    """One experiment: what was run, what it gave, and what was published of the same."""

    title: str
    source: str  # the publication, and its figures and tables; or the load
    about: str = ""  # what was run
    tables: Sequence[ReportTable] = ()
    charts: Sequence[Chart] = ()
    publication: str = ""  # the key of the publication that `comparisons` are of
    comparisons: Sequence[PublishedComparison] = ()
