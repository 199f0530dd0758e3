"""Translates failed Spark calls into our errors: which call is retried, which needs a person.

Over Connect many errors arrive as `UnknownException`; the name at the head of their text identifies
them. Behind it stand values of rows, which may be like any name.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass

from grpc import StatusCode
from pyspark.errors import (
    AnalysisException,
    IllegalArgumentException,
    ParseException,
    PySparkException,
)
from pyspark.errors.exceptions.connect import SparkConnectGrpcException

from binwright.lake.session import reported_by_server
from binwright.protocol.errors import (
    BinwrightError,
    LakeUnavailable,
    StagedUnreadable,
    TableRefused,
    WriteConflict,
    WriteUnclear,
)
from binwright.runtime.spark_channel import refusal

CONFLICTS = (
    "DELTA_CONCURRENT_",
    "DELTA_METADATA_CHANGED",
    "DELTA_PROTOCOL_CHANGED",
    "DELTA_MAX_COMMIT_RETRIES_EXCEEDED",
    "ConcurrentTransactionException",
)
"""Another commit came between: this one is not in the table."""

NOT_EMPTY = "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION"
"""Raised where other files are, or where another process is creating the table."""

NO_VERSION = "DELTA_TABLE_NOT_FOUND"
"""Raised where no commit is: of what is not a table, and of one whose creation was cut off."""

ADDED_BEFORE = ("FIELD_ALREADY_EXISTS", "DELTA_DUPLICATE_COLUMNS_FOUND")
"""Raised for a column that another process has just added."""

FORBIDDEN = (
    "DELTA_CANNOT_CREATE_LOG_PATH",
    "AccessControlException",
    "AccessDeniedException",
    "Permission denied",
    "No FileSystem for scheme",
    "FileSystem not found",
    "Read-only file system",
)
"""No table can be created at this path, and a retry does not help."""

POST_COMMIT = ("DELTA_POST_COMMIT_HOOK_FAILED",)
"""The commit is in the table; work behind it failed."""

VIOLATIONS = (
    "DELTA_VIOLATE_CONSTRAINT",
    "DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
    "DELTA_EXCEED_CHAR_VARCHAR_LIMIT",
)
"""The table rejects the rows: detected while they are written, before the commit."""

NO_EXTENSION = (
    "UNRESOLVED_ROUTINE",
    "CATALOG_NOT_FOUND",
    "MISSING_CATALOG_ABILITY",
    "FAILED_TO_LOAD_ROUTINE",
    "PARSE_SYNTAX_ERROR",  # a Spark that has no CALL
    "Cannot find catalog plugin class",
)
"""The server has no procedure of binwright's: no setting names it, or its jar is not there."""

UNREADABLE = (
    "PATH_NOT_FOUND",
    "FAILED_READ_FILE",
    "CANNOT_READ_FILE_FOOTER",
    "is not a Parquet file",
    "FileNotFoundException",
)
"""A file could not be read; its name decides, since Delta reads its own log after a commit."""

VALUES = 500
"""Characters of a row's values in a reason."""

WRITE_FAILED = ("TASK_WRITE_FAILED",)
"""A task could not write rows: the commit would have come after it."""

_CAUSE = re.compile(r"^Caused by: [\w.$]+: \[([A-Z0-9_.]+)\]", re.MULTILINE)
"""The condition of an error that is behind another one."""

_HEAD = re.compile(r"(?:\([\w.$]+\) )?(?:\[[A-Z0-9_.]+\])?")
"""Of an error's text: the class in Java, the condition."""

_OF_SERVER = (
    StatusCode.UNAVAILABLE,
    StatusCode.UNAUTHENTICATED,
    StatusCode.PERMISSION_DENIED,
)
"""It did not answer, or refuses all calls: its text has nothing of a statement."""

_REJECTED = (AnalysisException, ParseException)
_PERMANENT = (*_REJECTED, IllegalArgumentException)


def mentions(exc: BaseException, *known: str) -> bool:
    """Return whether the error's text has one of these names."""
    text = str(exc)
    return any(name in text for name in known)


def is_of(exc: BaseException, *known: str) -> bool:
    """Return whether the error itself is of these names: by its condition, or its text's head."""
    condition = exc.getCondition() if isinstance(exc, SparkConnectGrpcException) else None
    head = _HEAD.match(str(exc))
    own = f"{condition or ''} {head[0] if head else ''}"
    return any(name in own for name in known)


def kind(exc: Exception) -> str:
    """Return what kind of error it is: its condition, that of its innermost cause, or its class.

    Behind these stand parts of statements, and values of rows.
    """
    if causes := _CAUSE.findall(str(exc)):
        return str(causes[-1])
    condition = exc.getCondition() if isinstance(exc, PySparkException) else None
    head = _HEAD.match(str(exc))
    return condition or (head[0] if head else "") or type(exc).__name__


@dataclass(frozen=True, slots=True)
class LakeErrors:
    """Translates the errors of one table: its path, and the server that was called."""

    path: str
    spark: str

    def write_error(self, exc: Exception, files: Collection[str] = ()) -> BinwrightError:
        """Return our error for a failed append of these staged files.

        Only errors that cannot occur after the commit prove that nothing was committed (†). A full
        disk, a lost connection or a lost permission can occur after it, and can be temporary.
        """
        afterwards = mentions(exc, *POST_COMMIT) and not is_of(exc, *VIOLATIONS)
        if is_of(exc, *CONFLICTS) and not afterwards:
            return WriteConflict(f"{self.path}: {_line(exc)}")
        if reported_by_server(exc) and not afterwards:
            if mentions(exc, *UNREADABLE) and (named := [f for f in files if mentions(exc, f)]):
                return StagedUnreadable(f"{self.path}: {_line(exc)}", named)
            if isinstance(exc, _REJECTED) or mentions(exc, *VIOLATIONS):
                return TableRefused(f"{self.path} does not take these rows: {_line(exc)}")
            if is_of(exc, *WRITE_FAILED):
                return WriteConflict(f"{self.path}: {_line(exc)}")
        return WriteUnclear(f"{self.path}: {self.reason(exc)}")

    def erase_error(self, exc: Exception) -> BinwrightError:
        """Return our error for a step of an erasure, which may be repeated.

        What comes of the condition, the rows or the table comes again, so it is refused. Nothing is
        quoted: the condition may name a person, and rows are of persons.
        """
        if not isinstance(exc, SparkConnectGrpcException):
            return WriteUnclear(f"{self.path}: {self.reason(exc)}")
        if exc.getGrpcStatusCode() in _OF_SERVER:
            return WriteUnclear(f"{self.path}: {self.reason(exc)}")
        why = f"{self.path}: {kind(exc)} (Spark at {self.spark})"
        if is_of(exc, *CONFLICTS) or (is_of(exc, *WRITE_FAILED) and not _CAUSE.search(str(exc))):
            return WriteConflict(why)
        passes = any(name in kind(exc) for name in (*UNREADABLE, *POST_COMMIT))
        if passes or is_of(exc, *POST_COMMIT) or not reported_by_server(exc):
            return WriteUnclear(why)
        return TableRefused(why)

    def alter_error(self, exc: Exception) -> BinwrightError:
        """Return our error for columns that could not be added."""
        if is_of(exc, *ADDED_BEFORE):
            return WriteConflict(f"{self.path}: {_line(exc)}")
        return self.write_error(exc)

    def read_error(self, exc: Exception) -> BinwrightError:
        """Return our error for a failed read."""
        if isinstance(exc, _PERMANENT) and reported_by_server(exc):
            return TableRefused(
                f"{self.path} is not a table of ours: {_line(exc)}. Move what is there away, or "
                "name another lake (--lake, or lake.path)"
            )
        return LakeUnavailable(f"{self.path}: {self.reason(exc)}")

    def register_error(self, exc: Exception, name: str) -> BinwrightError:
        """Return our error for a table that could not be registered."""
        if isinstance(exc, _PERMANENT) and reported_by_server(exc):
            return TableRefused(f"{self.path} is not registered as {name}: {_line(exc)}")
        return LakeUnavailable(f"{self.path} is not registered as {name}: {self.reason(exc)}")

    def open_error(self, exc: Exception) -> BinwrightError:
        """Return our error for a table that could not be opened or created."""
        if mentions(exc, *FORBIDDEN):
            return TableRefused(
                f"no table can be made at {self.path}: {_line(exc)}. lake.path must be a "
                f"directory or object-store prefix that the Spark server ({self.spark}) itself "
                "can reach and write"
            )
        return self.read_error(exc)

    def reason(self, exc: Exception) -> str:
        """Return an error in one line, with the server, and what to check if that is known."""
        status = ""
        if isinstance(exc, SparkConnectGrpcException):
            status = exc.getGrpcStatusCode().name
        if (refused := refusal(exc, _line(exc))) is not None:
            return f"Spark at {self.spark} {refused}"
        if status == "UNAVAILABLE":
            return (
                f"Spark at {self.spark} does not answer ({_line(exc)}). Check that a Spark Connect "
                "server runs, that lake.spark names it, and that its port can be reached from here"
            )
        return f"{_line(exc)} (Spark at {self.spark})"


def _line(exc: Exception) -> str:
    """Return the error in one line, with values that were refused and Java's innermost cause."""
    text = str(exc)
    details = re.search(r'details = "(.*)"', text)  # a field of gRPC's longer text
    line = (details[1] if details else text.partition("\n")[0]).rstrip(";. ")
    causes: list[str] = re.findall(r"^Caused by: (.*)", text, re.MULTILINE)
    # Of a constraint Delta lists the values of one row behind the first line.
    if is_of(exc, *VIOLATIONS) and (values := re.findall(r"^ - (.+?) : (.*)$", text, re.MULTILINE)):
        row = ", ".join(f"{name} = {value}" for name, value in values)
        line += f" {row}" if len(row) <= VALUES else f" {row[:VALUES]}…"
    if causes and causes[-1] not in line:
        line += f" (caused by {causes[-1].rstrip('. ')})"
    return line or type(exc).__name__
