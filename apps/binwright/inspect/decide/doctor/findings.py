"""What a check found."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from binwright.protocol.texts import first_of

Status = Literal["ok", "warning", "fault", "skipped"]
LISTED = 5


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report."""

    check: str  # what was looked at
    status: Status
    what: str
    do: str = ""  # what to do; "" if nothing, or if `what` has it


def ok(check: str, what: str) -> Finding:
    """Return that all is well."""
    return Finding(check, "ok", what)


def warning(check: str, what: str, do: str = "") -> Finding:
    """Return what works, and may not for ever or for all."""
    return Finding(check, "warning", what, do)


def fault(check: str, what: str, do: str = "") -> Finding:
    """Return what does not work."""
    return Finding(check, "fault", what, do)


def skipped(check: str, what: str) -> Finding:
    """Return why something was not checked."""
    return Finding(check, "skipped", what)


def has_fault(findings: Iterable[Finding]) -> bool:
    """Whether something does not work."""
    return any(finding.status == "fault" for finding in findings)


def listed(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    return first_of(names, LISTED)
