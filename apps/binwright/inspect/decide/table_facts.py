"""What a table is like, by a group's reports and by the table's own log."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

READER_FEATURES = frozenset(
    {
        "catalogManaged",
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "typeWidening",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantShredding",
        "variantType",
    }
)
"""Delta's features that a reader must know; all others concern writers alone."""
SHUT_OUT = {
    "typeWidening": ("deltalake", "Polars"),
    "variantType": ("Spark before 4.0", "Polars", "deltalake, but for the encoded bytes"),
}
"""Feature -> readers that are known not to read it."""
_PREVIEW = "-preview"


@dataclass(frozen=True, slots=True)
class Facts:
    """What a table's log has in numbers."""

    version: int
    rows: int
    bad: int | None  # in the table of bad records; None: there is none


@dataclass(frozen=True, slots=True)
class CommitFacts:
    """One version of a table."""

    version: int
    at_ms: int  # wall clock of the lake
    operation: str
    rows: int | None  # that it added or rewrote; None: its log does not have that
    files: int | None  # likewise


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record that could not be decoded, without its bytes: they may be anything."""

    partition: int
    offset: int
    kind: str
    reason: str  # what is wrong, with the field


def listed_state(reported: str | None, fault: str, *, exists: bool) -> str:
    """Return a table's state in one word: a state of a `TableStatus`, or one of two more.

    waiting: it lands, but not all of it: `fault` names what is waited for, as the schema registry
    or Spark. absent: it does not exist yet, and nothing stands against it.

    Args:
        reported: By the group; None: the group does not know its topic yet.
        fault: Why it takes no rows, or why its topic's rows are not staged; empty: neither is so.
        exists: Whether there is a table at its path.
    """
    if fault and reported in {"landing", "claiming"}:
        return "waiting"
    if not exists and not fault:
        return "absent"
    return reported or "unwritten"


def commit_facts(
    version: int, at_ms: int, operation: str, metrics: Mapping[str, str] | None
) -> CommitFacts:
    """Return a version of a table's history; a number that is none counts as not known.

    Args:
        version: Its number.
        at_ms: Wall clock.
        operation: As Delta names it.
        metrics: Of the operation; None: the commit has none.
    """
    rows, written = (_number(metrics or {}, name) for name in ("numOutputRows", "numFiles"))
    files = _number(metrics or {}, "numAddedFiles") if written is None else written
    return CommitFacts(version, at_ms, operation, rows, files)


def _number(metrics: Mapping[str, str], name: str) -> int | None:
    text = metrics.get(name, "")
    return int(text) if text.isdecimal() else None


def reader_features(features: Collection[str]) -> tuple[str, ...]:
    """Return those of a table's features that its readers must know, in order."""
    return tuple(sorted(name for name in features if _stable(name) in READER_FEATURES))


def shut_out(features: Collection[str]) -> tuple[str, ...]:
    """Return readers that are known not to read a table with these features."""
    known = (SHUT_OUT.get(_stable(name), ()) for name in reader_features(features))
    return tuple(dict.fromkeys(reader for readers in known for reader in readers))


def _stable(feature: str) -> str:
    return feature.removesuffix(_PREVIEW)
