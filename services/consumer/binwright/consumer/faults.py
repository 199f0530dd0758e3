"""What a failed Spark call means for us: ask again, send again, or call a person.

Over Connect many errors come as `UnknownException`; the name in the text tells them apart.
"""

import re
from dataclasses import dataclass

from pyspark.errors import (
    AnalysisException,
    IllegalArgumentException,
    ParseException,
)
from pyspark.errors.exceptions.connect import SparkConnectGrpcException

from binwright.core.errors import (
    BinwrightError,
    LakeUnavailable,
    UserError,
    WriteConflict,
    WriteUnclear,
)

CONFLICTS = (
    "DELTA_CONCURRENT_",
    "DELTA_METADATA_CHANGED",
    "DELTA_PROTOCOL_CHANGED",
    "DELTA_MAX_COMMIT_RETRIES_EXCEEDED",
    "ConcurrentTransactionException",
)
"""Somebody else's commit came between: sending again under the same version is safe."""

NOT_EMPTY = "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION"
"""What a table's creator meets where others' files are, or where another creator is at it."""

FORBIDDEN = (
    "DELTA_CANNOT_CREATE_LOG_PATH",
    "AccessControlException",
    "AccessDeniedException",
    "Permission denied",
    "No FileSystem for scheme",
    "FileSystem not found",
    "Read-only file system",
)
"""No table can be made in this place, today or tomorrow."""

_PERMANENT = (AnalysisException, ParseException, IllegalArgumentException)


def names(exc: BaseException, *known: str) -> bool:
    """Tell whether the error's text has one of these names."""
    text = str(exc)
    return any(name in text for name in known)


def answered(exc: BaseException) -> bool:
    """Tell whether the server itself reported the error, so that its session is whole."""
    if not isinstance(exc, SparkConnectGrpcException):  # pyspark names its own refusals, too
        return False
    condition = exc.getCondition() or ""
    return bool(condition) and not condition.startswith(("INVALID_HANDLE", "OPERATION_"))


@dataclass(frozen=True, slots=True)
class Faults:
    """The errors of one place: a table's path, and the server that was asked about it."""

    path: str
    spark: str

    def of_write(self, exc: Exception) -> BinwrightError:
        """Return our error for a failed append."""
        if names(exc, *CONFLICTS):
            return WriteConflict(f"{self.path}: {_line(exc)}")
        if isinstance(exc, _PERMANENT) and answered(exc):
            return self._unusable(exc)
        # A full disk, a lost line, a lost right: each can strike after the commit, and can pass.
        return WriteUnclear(f"{self.path}: {self._reason(exc)}")

    def of_read(self, exc: Exception) -> BinwrightError:
        """Return our error for a failed question."""
        if isinstance(exc, _PERMANENT) and answered(exc):
            return self._unusable(exc)
        return LakeUnavailable(f"{self.path}: {self._reason(exc)}")

    def of_open(self, exc: Exception) -> BinwrightError:
        """Return our error when the table could not be opened or made."""
        if names(exc, *FORBIDDEN):
            return UserError(
                f"no table can be made at {self.path}: {_line(exc)}. lake.path must be a "
                f"directory or object-store prefix that the Spark server ({self.spark}) itself "
                "can reach and write"
            )
        return self.of_read(exc)

    def _unusable(self, exc: Exception) -> UserError:
        return UserError(
            f"{self.path} is not a table of ours: {_line(exc)}. Move what is there away, or name "
            "another lake.path"
        )

    def _reason(self, exc: Exception) -> str:
        if (
            isinstance(exc, SparkConnectGrpcException)
            and exc.getGrpcStatusCode().name == "UNAVAILABLE"
        ):
            return (
                f"Spark at {self.spark} does not answer ({_line(exc)}). Check that a Spark Connect "
                "server runs, that lake.spark names it, and that its port can be reached from here"
            )
        return f"{_line(exc)} (Spark at {self.spark})"


def _line(exc: Exception) -> str:
    """Return the error in one line, with what Java says is at the bottom of it."""
    text = str(exc)
    details = re.search(r'details = "(.*)"', text)  # gRPC's own line is a field of a longer text
    line = (details[1] if details else text.partition("\n")[0]).rstrip(";. ")
    causes: list[str] = re.findall(r"^Caused by: (.*)", text, re.MULTILINE)
    if causes and causes[-1] not in line:
        line += f" (caused by {causes[-1].rstrip('. ')})"
    return line or type(exc).__name__
