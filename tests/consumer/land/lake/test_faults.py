"""The translation of Spark's errors; their texts are those of a real server."""

import grpc
import pytest
from pyspark.errors.exceptions.connect import (
    AnalysisException,
    SparkConnectGrpcException,
    SparkException,
    UnknownException,
)

from binwright.consumer.land.lake.faults import LakeErrors
from binwright.protocol.errors import (
    BinwrightError,
    LakeUnavailable,
    StagedUnreadable,
    TableRefused,
    WriteConflict,
    WriteUnclear,
)

ERRORS = LakeErrors("/lake/orders", "sc://spark:15002")

OVERTAKEN = UnknownException(
    "(io.delta.exceptions.ConcurrentTransactionException) [DELTA_CONCURRENT_TRANSACTION] "
    "ConcurrentTransactionException: This error occurs when multiple streaming queries are using "
    "the same checkpoint to write into this table.",
    errorClass="DELTA_CONCURRENT_TRANSACTION",
)
UPGRADED = UnknownException(
    "(io.delta.exceptions.ProtocolChangedException) [DELTA_PROTOCOL_CHANGED] "
    "ProtocolChangedException: The protocol version of the Delta table has been changed",
    errorClass="DELTA_PROTOCOL_CHANGED",
)
ALTERED = UnknownException("(...) [DELTA_METADATA_CHANGED]", errorClass="DELTA_METADATA_CHANGED")
CANCELLED = SparkConnectGrpcException(
    "[OPERATION_CANCELED] Operation has been canceled.", errorClass="OPERATION_CANCELED"
)
DISK_FULL = SparkException(
    "[TASK_WRITE_FAILED] Task failed while writing rows to file:/lake/orders. SQLSTATE: 58030\n\n"
    "JVM stacktrace:\norg.apache.spark.SparkException\n\tat org.apache.spark.X(Y.scala:1)\n"
    "Caused by: org.apache.hadoop.fs.FSError: java.io.IOException: No space left on device\n"
    "\tat org.apache.Z(Z.java:2)\nCaused by: java.io.IOException: No space left on device\n",
    errorClass="TASK_WRITE_FAILED",
)
GONE = SparkConnectGrpcException(
    "<_MultiThreadedRendezvous of RPC that terminated with:\n\tstatus = StatusCode.UNAVAILABLE\n"
    '\tdetails = "failed to connect to all addresses; Connection refused"\n>',
    grpc_status_code=grpc.StatusCode.UNAVAILABLE,
)
RESTARTED = SparkConnectGrpcException(
    "[INVALID_HANDLE.SESSION_CHANGED] The handle is invalid. The session changed.",
    errorClass="INVALID_HANDLE.SESSION_CHANGED",
)
NO_TABLE = AnalysisException(
    "[PATH_NOT_FOUND] Path does not exist: /lake/orders. SQLSTATE: 42K03;\nAppendData",
    errorClass="PATH_NOT_FOUND",
)
NO_LOG_PATH = UnknownException(
    "(org.apache.spark.sql.delta.DeltaIOException) [DELTA_CANNOT_CREATE_LOG_PATH] Cannot create "
    "file:/lake/orders/_delta_log",
    errorClass="DELTA_CANNOT_CREATE_LOG_PATH",
)
LATE = TimeoutError("no answer within 5 s")
CONSTRAINT_VIOLATED = UnknownException(
    "(org.apache.spark.sql.delta.schema.DeltaInvariantViolationException) "
    "[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK constraint small (offset < 8) violated",
    errorClass="DELTA_VIOLATE_CONSTRAINT_WITH_VALUES",
)
LOST_FILE = AnalysisException(
    "[PATH_NOT_FOUND] Path does not exist: file:/lake/_staging/g/orders/a-1.parquet.",
    errorClass="PATH_NOT_FOUND",
)
TORN_FILE = SparkException(
    "[FAILED_READ_FILE.CANNOT_READ_FILE_FOOTER] Encountered error while reading file "
    "file:///lake/_staging/g/orders/a-1.parquet. Could not read footer.",
    errorClass="FAILED_READ_FILE.CANNOT_READ_FILE_FOOTER",
)
TORN_LOG = SparkException(
    "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file "
    "file:///lake/orders/_delta_log/00000000000000000100.checkpoint.parquet.",
    errorClass="FAILED_READ_FILE.NO_HINT",
)
AFTERWARDS = AnalysisException(
    "[DELTA_POST_COMMIT_HOOK_FAILED] Committing to the Delta table version 7 succeeded but error "
    "while executing post-commit hook: FileNotFoundException a-1.parquet",
    errorClass="DELTA_POST_COMMIT_HOOK_FAILED",
)
AFTERWARDS_CONFLICTED = UnknownException(
    "(org.apache.spark.sql.delta.DeltaRuntimeException) [DELTA_POST_COMMIT_HOOK_FAILED] Committing "
    "to the Delta table version 7 succeeded but error while executing post-commit hook: "
    "[DELTA_CONCURRENT_APPEND]",
    errorClass="DELTA_POST_COMMIT_HOOK_FAILED",
)
WRAPPED_CONFLICT = UnknownException(
    "(io.delta.exceptions.ConcurrentTransactionException) This error occurs", errorClass=None
)


def violated_by(value: str) -> UnknownException:
    """Return the error of a row whose text violates a constraint, as the server shows it."""
    name = "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
    return UnknownException(
        f"(org.apache.spark.sql.delta.schema.DeltaInvariantViolationException) [{name}] CHECK "
        f"constraint k (length(s) < 5) violated by row with values:\n - s : {value}",
        errorClass=name,
    )


NO_PERMISSION = SparkException(
    "[TASK_WRITE_FAILED] Task failed while writing rows\nCaused by: "
    "org.apache.hadoop.security.AccessControlException: Permission denied: user=spark",
    errorClass="TASK_WRITE_FAILED",
)
TORN_BUT_GONE = SparkConnectGrpcException(
    "[FAILED_READ_FILE.NO_HINT] while reading file a-1.parquet", errorClass=None
)


@pytest.mark.parametrize(
    ("exc", "kind"),
    [
        (OVERTAKEN, WriteConflict),
        (UPGRADED, WriteConflict),
        (ALTERED, WriteConflict),
        (CANCELLED, WriteUnclear),
        (DISK_FULL, WriteConflict),
        (GONE, WriteUnclear),
        (RESTARTED, WriteUnclear),
        (LATE, WriteUnclear),
        (NO_PERMISSION, WriteConflict),
        (AFTERWARDS, WriteUnclear),
        (AFTERWARDS_CONFLICTED, WriteUnclear),
        (WRAPPED_CONFLICT, WriteConflict),
        (violated_by("DELTA_CONCURRENT_APPEND"), TableRefused),
        (violated_by("DELTA_POST_COMMIT_HOOK_FAILED"), TableRefused),
        (violated_by("TASK_WRITE_FAILED PATH_NOT_FOUND [DELTA_METADATA_CHANGED]"), TableRefused),
        (TORN_LOG, WriteUnclear),
        (TORN_BUT_GONE, WriteUnclear),
        (NO_TABLE, TableRefused),
        (CONSTRAINT_VIOLATED, TableRefused),
        (LOST_FILE, StagedUnreadable),
        (TORN_FILE, StagedUnreadable),
    ],
)
def test_a_failed_write_counts_as_not_committed_only_where_that_is_certain(
    exc: Exception, kind: type[BinwrightError]
) -> None:
    assert type(ERRORS.write_error(exc, ["a-1.parquet", "b-2.parquet"])) is kind


@pytest.mark.parametrize("exc", [LOST_FILE, TORN_FILE])
def test_a_staged_file_that_cannot_be_read_is_named(exc: Exception) -> None:
    found = ERRORS.write_error(exc, ["a-1.parquet", "b-2.parquet"])

    assert isinstance(found, StagedUnreadable)
    assert found.files == {"a-1.parquet"}


def test_a_read_failure_that_names_no_staged_file_blames_none() -> None:
    assert type(ERRORS.write_error(TORN_FILE, ["b-2.parquet"])) is WriteUnclear


@pytest.mark.parametrize(
    ("exc", "kind"),
    [(GONE, LakeUnavailable), (LATE, LakeUnavailable), (NO_TABLE, TableRefused)],
)
def test_a_failed_read_can_be_retried_unless_there_is_no_table(
    exc: Exception, kind: type[BinwrightError]
) -> None:
    assert type(ERRORS.read_error(exc)) is kind


@pytest.mark.parametrize(
    ("exc", "kind"),
    [(NO_LOG_PATH, TableRefused), (DISK_FULL, LakeUnavailable), (GONE, LakeUnavailable)],
)
def test_a_table_that_cannot_be_created_is_refused_or_can_be_retried(
    exc: Exception, kind: type[BinwrightError]
) -> None:
    assert type(ERRORS.open_error(exc)) is kind


@pytest.mark.parametrize(
    ("exc", "text"),
    [
        (DISK_FULL, "caused by java.io.IOException: No space left on device"),
        (GONE, "sc://spark:15002 does not answer (failed to connect to all addresses; Connection"),
        (LATE, "no answer within 5 s"),
    ],
)
def test_the_message_has_path_and_reason_in_one_line(exc: Exception, text: str) -> None:
    message = str(ERRORS.write_error(exc))

    assert message.startswith("/lake/orders: ")
    assert text in message
    assert "\n" not in message


def test_of_a_constraint_the_values_that_it_refuses_are_reported() -> None:
    refused = LakeErrors("/lake/orders", "sc://s").write_error(violated_by("too long"))
    assert isinstance(refused, TableRefused)
    assert "s = too long" in str(refused)
    assert (
        len(str(LakeErrors("/lake/orders", "sc://s").write_error(violated_by("x" * 9_999)))) < 999
    )


PERSON = "Erika Mustermann"
NO_NUMBER = SparkException(
    f"[CAST_INVALID_INPUT] The value '{PERSON}' of the type STRING cannot be cast to BIGINT",
    errorClass="CAST_INVALID_INPUT",
)
NO_NUMBER_WRITTEN = SparkException(
    "[TASK_WRITE_FAILED] Task failed while writing rows to file:/lake/orders__erased.\n"
    "Caused by: org.apache.spark.SparkNumberFormatException: [CAST_INVALID_INPUT] The value "
    f"'{PERSON}' of the type STRING cannot be cast to BIGINT",
    errorClass="TASK_WRITE_FAILED",
)
APPEND_ONLY = UnknownException(
    "(org.apache.spark.sql.delta.DeltaUnsupportedOperationException) "
    "[DELTA_CANNOT_MODIFY_APPEND_ONLY] This table is configured to only allow appends",
    errorClass="DELTA_CANNOT_MODIFY_APPEND_ONLY",
)
OF_JAVA = UnknownException(f'(java.lang.NumberFormatException) For input string: "{PERSON}"')


@pytest.mark.parametrize(
    ("exc", "kind", "text"),
    [
        (NO_NUMBER, TableRefused, "CAST_INVALID_INPUT"),
        (NO_NUMBER_WRITTEN, TableRefused, "CAST_INVALID_INPUT"),
        (APPEND_ONLY, TableRefused, "DELTA_CANNOT_MODIFY_APPEND_ONLY"),
        (OF_JAVA, WriteUnclear, "(java.lang.NumberFormatException)"),
        (OVERTAKEN, WriteConflict, "DELTA_CONCURRENT_TRANSACTION"),
        (DISK_FULL, WriteConflict, "TASK_WRITE_FAILED"),
        (AFTERWARDS, WriteUnclear, "DELTA_POST_COMMIT_HOOK_FAILED"),
        (AFTERWARDS_CONFLICTED, WriteUnclear, "DELTA_POST_COMMIT_HOOK_FAILED"),
        (TORN_LOG, WriteUnclear, "FAILED_READ_FILE.NO_HINT"),
        (NO_TABLE, WriteUnclear, "PATH_NOT_FOUND"),
        (RESTARTED, WriteUnclear, "INVALID_HANDLE.SESSION_CHANGED"),
        (GONE, WriteUnclear, "does not answer"),
        (LATE, WriteUnclear, "no answer within 5 s"),
    ],
)
def test_an_erasure_ends_with_what_comes_again_and_quotes_neither_condition_nor_rows(
    exc: Exception, kind: type[BinwrightError], text: str
) -> None:
    found = ERRORS.erase_error(exc)
    assert type(found) is kind
    assert text in str(found)
    assert PERSON not in str(found)
