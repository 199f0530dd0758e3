"""Judges how brokers are reached, and what they support."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from binwright.inspect.decide.doctor.findings import Finding, fault, ok, warning

TESTED = ("3.7", "4.0", "4.4")
"""The releases of Kafka that tests run on (docs/how-to/versions.md)."""
SIZES = "DescribeLogDirs"
RENEWED_S = 3 * 86_400.0
"""A certificate that is valid for less should have been renewed: as the alert has it."""


@dataclass(frozen=True, slots=True)
class BrokerReply:
    """A broker's address, and how it answered."""

    address: str
    reason: str = ""  # why it cannot be used; "" if it can
    check: str = ""  # what to check then; "" if the reason leaves it open


def servers(replies: Sequence[BrokerReply], general: str) -> Iterator[Finding]:
    """Judge the bootstrap servers; one that answers is enough to begin with.

    Args:
        replies: Those of the settings'.
        general: What to check where the reason leaves it open.
    """
    works = any(not server.reason for server in replies)
    for server in replies:
        check = f"kafka {server.address}"
        if not server.reason:
            yield ok(check, "answers")
        elif works:
            yield warning(check, server.reason, "repair it, or leave it out")
        else:
            yield fault(check, server.reason, f"check {server.check or general}")


def advertised(replies: Mapping[int, BrokerReply]) -> Iterator[Finding]:
    """Judge whether each broker of the cluster can be reached at the address it advertises."""
    for number, server in sorted(replies.items()):
        if server.reason:
            yield fault(
                f"broker {number}",
                f"advertises {server.address}, which cannot be used from here: {server.reason}",
                f"check {server.check or 'advertised.listeners of the broker, and the network'}",
            )
    if replies and not any(server.reason for server in replies.values()):
        yield ok(
            "brokers", f"{len(replies)} of {len(replies)} reached as they advertise themselves"
        )


def log_directories(dead: Mapping[int, Sequence[str]]) -> Iterator[Finding]:
    """Judge the log directories that brokers cannot read any more."""
    for number, paths in sorted(dead.items()):
        yield fault(
            f"broker {number}",
            f"log directory {', '.join(paths)} is dead: what it held has a replica less",
            "repair the disk and restart the broker, or move what it held: binwright brokers drain",
        )


def readable_password(file: str) -> Finding:
    """Judge a settings file with a password that every user of the machine may read."""
    return warning(
        f"password in {file}",
        "every user of this machine may read it",
        "chmod o-r the file, or name a file of its own by kafka.sasl_password_file",
    )


def certificate(file: str, valid_s: float) -> Finding:
    """Judge a client's certificate that is valid for so long; 0: it cannot be read."""
    check, do = f"certificate {file}", "renew it and its key in place; nothing has to be restarted"
    if valid_s <= 0:
        return fault(check, "has expired" if valid_s else "cannot be read", do)
    hours = f"valid for {valid_s / 3600:,.0f} hours"
    return warning(check, f"{hours} only", do) if valid_s < RENEWED_S else ok(check, hours)


@dataclass(frozen=True, slots=True)
class RequestKind:
    """A kind of request that binwright sends."""

    name: str
    key: int  # Kafka's number
    versions: Collection[int]  # of those, one has to be the broker's


def apis(
    supported: Mapping[int, tuple[int, int]], wanted: Sequence[RequestKind]
) -> Iterator[Finding]:
    """Judge whether brokers have a version of each request that binwright has.

    Args:
        supported: Kind of request -> the oldest and the newest version of the broker.
        wanted: What binwright sends.
    """
    unfit = [each for each in wanted if not _fits(supported.get(each.key), each.versions)]
    for each in unfit:
        theirs = supported.get(each.key)
        versions = f"versions {theirs[0]} to {theirs[1]}" if theirs else "none"
        what = f"{each.name}: the broker has {versions}, binwright {_listed(each.versions)}"
        if each.name == SIZES:
            yield warning("broker version", what, "nothing: rates are estimated from batches")
        else:
            yield fault("broker version", what, "use brokers of Kafka 2.3 or later, or binwright")
    if not unfit:
        tested = f"{', '.join(TESTED[:-1])} and {TESTED[-1]}"
        what = f"supports all {len(wanted)} kinds of request; tested are Kafka {tested}"
        yield ok("broker version", what)


def _fits(theirs: tuple[int, int] | None, ours: Collection[int]) -> bool:
    return theirs is not None and any(theirs[0] <= each <= theirs[1] for each in ours)


def _listed(versions: Collection[int]) -> str:
    return ", ".join(map(str, sorted(versions)))
