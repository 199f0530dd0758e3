"""What a failed Spark call means for us: ask again, send again, read again, or call a person.

Over Connect many errors come as `UnknownException`; the name in the text tells them apart.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass

from pyspark.errors import AnalysisException, IllegalArgumentException, ParseException
from pyspark.errors.exceptions.connect import SparkConnectGrpcException

from binwright.core.errors import (
    BinwrightError,
    LakeUnavailable,
    StagedUnreadable,
    TableRefused,
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

AFTERWARDS = ("DELTA_POST_COMMIT_HOOK_FAILED",)
"""The commit stands, and something failed that comes behind it."""

VIOLATIONS = (
    "DELTA_VIOLATE_CONSTRAINT",
    "DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
    "DELTA_EXCEED_CHAR_VARCHAR_LIMIT",
)
"""Rows that the table does not take: found while they are written, before the commit."""

UNREADABLE = (
    "PATH_NOT_FOUND",
    "FAILED_READ_FILE",
    "CANNOT_READ_FILE_FOOTER",
    "is not a Parquet file",
    "FileNotFoundException",
)
"""A file could not be read. Delta reads its own log behind a commit: look at the file's name."""

_WRONG = (AnalysisException, ParseException)
_PERMANENT = (*_WRONG, IllegalArgumentException)


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

    def of_write(self, exc: Exception, files: Collection[str] = ()) -> BinwrightError:
        """Return our error for a failed append of these staged files.

        Only what cannot strike behind the commit may say that nothing was committed (†). A full
        disk, a lost line or a lost right can, and can pass.
        """
        if names(exc, *CONFLICTS):
            return WriteConflict(f"{self.path}: {_line(exc)}")
        if answered(exc) and not names(exc, *AFTERWARDS):
            if names(exc, *UNREADABLE) and (found := [f for f in files if names(exc, f)]):
                return StagedUnreadable(f"{self.path}: {_line(exc)}", found)
            if isinstance(exc, _WRONG) or names(exc, *VIOLATIONS):
                return TableRefused(f"{self.path} does not take these rows: {_line(exc)}")
        return WriteUnclear(f"{self.path}: {self._reason(exc)}")

    def of_read(self, exc: Exception) -> BinwrightError:
        """Return our error for a failed question."""
        if isinstance(exc, _PERMANENT) and answered(exc):
            return TableRefused(
                f"{self.path} is not a table of ours: {_line(exc)}. Move what is there away, or "
                "set another lake.path"
            )
        return LakeUnavailable(f"{self.path}: {self._reason(exc)}")

    def of_open(self, exc: Exception) -> BinwrightError:
        """Return our error when the table could not be opened or made."""
        if names(exc, *FORBIDDEN):
            return TableRefused(
                f"no table can be made at {self.path}: {_line(exc)}. lake.path must be a "
                f"directory or object-store prefix that the Spark server ({self.spark}) itself "
                "can reach and write"
            )
        return self.of_read(exc)

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
