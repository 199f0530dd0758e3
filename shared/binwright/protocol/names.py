"""Names that reach topics, directories and SQL: each has one form, checked wherever it is read.

A topic's name is Kafka's: letters, digits, `.`, `_` and `-`, at most 249, and neither `.` nor `..`.
"""

import re
from typing import Annotated

from pydantic import AfterValidator

TOPIC_LENGTH, GROUP_LENGTH, FILE_LENGTH = 249, 200, 255
RESERVED = frozenset({"_delta_log", "_staging", "_up"})
"""Beside or in tables these are directories of Delta and of ours: no topic of that name lands."""

BAD_SUFFIX = "__bad"
"""Behind the name of a table of columns: the table of its bad records."""
ERASED_SUFFIX = "__erased"
"""Behind a table's name: the table of the places of records that were erased from it."""
DELETED_SUFFIX = "__deleted"
"""Behind the name of a table of keys: the table of those whose rows were deleted."""
TABLE_LENGTH = TOPIC_LENGTH - len(BAD_SUFFIX)

ADDED_COLUMNS = "~columns"
"""Beside a table's staged files: the columns that it got for new fields of JSON."""
TABLE_LAYOUT = "~layout"
"""Beside a table's staged files: that its writer reads rows which are laid out as the table's."""

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_MARK = re.compile(r"large-[0-9]{1,10}-[0-9]{1,19}-[0-9a-f]{8}-[12]\.mark")
_STAGED = re.compile(r"[0-9]{1,10}-[0-9]{1,19}-[0-9]{1,19}-[0-9a-f]{8}\.parquet")
_PARQUET, _OF_BAD = ".parquet", ".bad.parquet"
_PORTION = re.compile(r"portion-[0-9a-f]{32}\.parquet")
_LEASE = re.compile(r"lease-[0-9a-f]{32}-[0-9]{1,9}\.parquet")


def topic_name(text: str) -> str:
    """Return a topic's name; raise `ValueError` for what Kafka, or a lake, cannot have."""
    return _checked(text, TOPIC_LENGTH, "a topic's name")


def table_name(text: str) -> str:
    """Return a table's name, as its topic's or of another; raise `ValueError` for one it is not."""
    name = _checked(text, TABLE_LENGTH, "a table's name")
    if name in RESERVED:
        raise ValueError(f"a directory in a lake has the name {name}, so no table has it")
    if name.endswith(BAD_SUFFIX):
        raise ValueError(f"{name} has the name of a table of bad records")
    if name.endswith(ERASED_SUFFIX):
        raise ValueError(f"{name} has the name of a table of erased records' places")
    if name.endswith(DELETED_SUFFIX):
        raise ValueError(f"{name} has the name of a table of deleted keys")
    return name


def group_name(text: str) -> str:
    """Return a group's name; raise `ValueError` for what no topic and directory may be called."""
    return _checked(text, GROUP_LENGTH, "a group's name")


def file_name(text: str) -> str:
    """Return a file's name; raise `ValueError` for one that names another directory, or none."""
    return _checked(text, FILE_LENGTH, "a file's name")


def is_topic_name(text: str) -> bool:
    """Tell whether Kafka can have a topic of this name."""
    return _is_name(text, TOPIC_LENGTH)


def is_staged_file(name: str) -> bool:
    """Tell whether a consumer gives such names to its staged files: SLOT-EPOCH-NUMBER-RANDOM."""
    return _STAGED.fullmatch(name) is not None


def bad_file(name: str) -> str:
    """Return the name of the file beside a staged one that has its bad records."""
    return name.removesuffix(_PARQUET) + _OF_BAD


def is_bad_file(name: str) -> bool:
    """Tell whether a file has the bad records of a staged one."""
    staged = name.removesuffix(_OF_BAD) + _PARQUET
    return name.endswith(_OF_BAD) and (is_staged_file(staged) or is_portion(staged))


def staged_by(name: str) -> tuple[int, int]:
    """Return slot and epoch of the consumer that staged a file of this name."""
    slot, epoch, *_ = name.split("-")
    return int(slot), int(epoch)


def portion_name(unique: str) -> str:
    """Return the name of a file that a table's writer stages itself, by 32 hex digits.

    No announcement has such a name, and no reader takes it for what it staged before (†): between
    its offsets there are others.
    """
    return f"portion-{unique}.parquet"


def is_portion(name: str) -> bool:
    """Tell whether a table's writer gives such names to what it stages itself."""
    return _PORTION.fullmatch(name) is not None


def lease_name(writer: str, claim: int) -> str:
    """Return the name of a claim's lease: the writer's 32 hex digits, and the claim's number."""
    return f"lease-{writer}-{claim}.parquet"


def is_lease(name: str) -> bool:
    """Tell whether a table's writer gives such names to its leases."""
    return _LEASE.fullmatch(name) is not None


def batch_name(partition: int, first: int, checksum: int) -> str:
    """Return a name for a batch that could not be decoded: the same wherever it is met."""
    return f"undecodable-{partition}-{first}-{checksum:08x}.batch"


def mark_name(partition: int, first: int, checksum: int, number: int) -> str:
    """Return the name of the first or second mark of a large batch that is being decoded."""
    return f"large-{partition}-{first}-{checksum:08x}-{number}.mark"


def is_mark(name: str) -> bool:
    """Tell whether a file marks a large batch."""
    return _MARK.fullmatch(name) is not None


def _is_name(text: str, length: int) -> bool:
    return _NAME.fullmatch(text) is not None and len(text) <= length and text not in {".", ".."}


def _checked(text: str, length: int, what: str) -> str:
    if not _is_name(text, length):
        raise ValueError(
            f"{what} has letters, digits, '.', '_' and '-' only, {length} at most, and is neither "
            f"'.' nor '..', got {text!r}"
        )
    return text


TopicName = Annotated[str, AfterValidator(topic_name)]
GroupName = Annotated[str, AfterValidator(group_name)]
FileName = Annotated[str, AfterValidator(file_name)]
