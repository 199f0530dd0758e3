"""Judges staging, Spark servers, and whether both see the same place."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from binwright.inspect.decide.doctor.findings import Finding, fault, ok, warning

CLOCK_S = 60.0
"""A larger difference between clocks makes ages of files and of commits wrong."""

TESTED = ("4.0", "4.1", "4.2")
"""The releases of Spark that tests run on (docs/how-to/versions.md)."""

Delta = Literal["ready", "not set up", "missing"]


@dataclass(frozen=True, slots=True)
class StagingProbe:
    """Where rows are staged, after a probe was written there.

    Attributes:
        place: Its address without credentials.
        error: Why it cannot be written; "" if it can.
        created: Whether the directory was missing, and was made for the probe.
        free_bytes: On its disk; None: it is an object store.
    """

    place: str
    error: str = ""
    created: bool = False
    free_bytes: int | None = None


def staging(probe: StagingProbe, max_bytes: int) -> Iterator[Finding]:
    """Judge where rows are staged.

    Args:
        probe: What the probe showed.
        max_bytes: What one consumer may stage (`staging.max_bytes`).
    """
    if probe.error:
        yield fault("staging", probe.error)
        return
    note = " (it does not exist yet, and can be made)" if probe.created else ""
    yield ok("staging", f"{probe.place} can be written{note}")
    if probe.free_bytes is None:
        return
    free = f"{probe.free_bytes / 1e9:.1f} GB are free"
    if probe.free_bytes < max_bytes:
        yield warning(
            "free space",
            f"{free}, and one consumer may stage {max_bytes / 1e9:.1f} GB (staging.max_bytes)",
            "make room, or lower staging.max_bytes: tables need room too",
        )
    else:
        yield ok("free space", f"{free} on the disk of the staging location")


@dataclass(frozen=True, slots=True)
class Spark:
    """A Spark Connect server that answered.

    Attributes:
        version: Of Spark.
        delta: Whether it has Delta, and is set up for it.
        ahead_s: Its clock less that of this machine, seconds.
        appends: Why staged files do not become files of tables as they are; "": they do; None: they
            are not to (`lake.commit`).
    """

    version: str
    delta: Delta
    ahead_s: float
    appends: str | None = None


def spark(address: str, reply: Spark) -> Iterator[Finding]:
    """Judge a server.

    Args:
        address: The server's, without its token.
        reply: The server's.
    """
    check, tested = f"spark {address}", f"{', '.join(TESTED[:-1])} and {TESTED[-1]}"
    do = f"run Spark {TESTED[-1]}"
    if _release(reply.version)[:1] != _release(TESTED[0])[:1]:
        yield fault(check, f"has Spark {reply.version}, which is not used: tested are {tested}", do)
    elif ".".join(_release(reply.version)) not in TESTED:
        yield warning(check, f"has Spark {reply.version}: tested are {tested}", do)
    else:
        yield ok(check, f"answers, Spark {reply.version}")
    if reply.delta == "missing":
        yield fault(
            check, "has no Delta Lake", "start it with --packages io.delta:delta-spark_2.13:VERSION"
        )
    elif reply.delta == "not set up":
        yield fault(
            check,
            "has Delta Lake, and is not set up for it",
            "set spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension and "
            "spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog",
        )
    elif reply.appends:
        yield warning(
            f"{check} commits",
            f"it appends, which takes more of its CPU: {reply.appends}",
            "give it Delta 4.4.0 and binwright-landing.jar (docs/how-to/spark-cluster.md), or set "
            "lake.commit to append",
        )
    elif reply.appends is not None:
        yield ok(f"{check} commits", "staged files as they are")
    if abs(reply.ahead_s) > CLOCK_S:
        way = "ahead of" if reply.ahead_s > 0 else "behind"
        yield warning(
            check,
            f"its clock is {abs(reply.ahead_s):.0f} s {way} this machine's",
            "set both by NTP",
        )


def probe_seen(address: str, place: str, wanted: str, seen: str, error: str) -> Finding:
    """Judge whether a server reads the file that staging has written.

    Args:
        address: The server's, without its token.
        place: Where the file is, as Spark was asked for it.
        wanted: What the file has.
        seen: What the server read in it; "" if it could not.
        error: Why not.
    """
    check = f"spark {address} reads staging"
    if seen == wanted:
        return ok(check, f"a file written here was read there, at {place}")
    what = (
        f"it does not read {place}, which was just written here: {error}"
        if error
        else f"it reads another file at {place} than the one that was written here"
    )
    return fault(
        check,
        what,
        "give Spark and consumers the same directory or object store at the same path, and Spark's "
        "user the right to read it (staging.path, lake.path)",
    )


def subjects(versions_of: Mapping[str, int]) -> Iterator[Finding]:
    """Judge the subjects of a registry that answers: each with the number of its versions."""
    if not versions_of:
        yield ok("registry", "answers")
    for subject, versions in sorted(versions_of.items()):
        if versions:
            yield ok(f"registry subject {subject}", f"{versions} versions")
        else:
            yield fault(
                f"registry subject {subject}",
                "there is no such subject",
                "register a schema, or set `subject` of the table",
            )


def _release(version: str) -> tuple[str, ...]:
    return tuple(version.split(".")[:2])
