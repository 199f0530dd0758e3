"""The values that messages are made of: what they may be, and how they are read."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Annotated, TypeVar

from pydantic import BeforeValidator, Field, PlainValidator

from binwright.protocol.model import BytesPerSecond, Slot, TopicPartition

T = TypeVar("T")


@lru_cache(maxsize=1 << 18)  # each report names the same ones again
def _parsed(text: str) -> TopicPartition:
    return TopicPartition.parse(text)


def _partition(value: object) -> TopicPartition:
    return _parsed(value if isinstance(value, str) else "")


Number = Annotated[int, Field(ge=0, le=2**63 - 1)]
"""What Kafka and our JSON can hold."""
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]

Epoch = Number
"""Which process of the slot: the offset of its `Hello` in metadata partition 0."""
Term = Number
"""Which controller: the offset of its `Claim` in metadata partition 0."""
Offset = Number
Revision = Number
"""Which command, or which one this replies to: never used twice."""
SlotNumber = Annotated[Slot, Field(ge=0, le=2**31 - 2)]
"""The consumer's number; it reads this partition of the commands topic."""
Partition = Annotated[TopicPartition, BeforeValidator(_partition)]
Rate = Annotated[BytesPerSecond, Field(ge=0, allow_inf_nan=False)]


FieldName = Annotated[str, Field(max_length=200)]
"""Of a field in a record, with those that it lies in: `by.items[].price`."""

LATEST_MS = 253_402_300_799_999
"""The last millisecond of the year 9999: what is above it is no time."""


def checked_offset(name: str, value: object) -> int:
    """Return an offset, or a count of the same range; raise `ValueError` for anything else."""
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise ValueError(f"{name}: not an offset: {value!r}")
    return value


def _offset_if_known(name: str, value: object) -> int | None:
    return None if value is None else checked_offset(name, value)


def _by_partition(read: Callable[[str, object], T]) -> Callable[[object], dict[TopicPartition, T]]:
    def validated(value: object) -> dict[TopicPartition, T]:
        if not isinstance(value, dict):
            raise ValueError(f"not a mapping: {value!r}")  # noqa: TRY004 - pydantic's
        return {_partition(name): read(name, each) for name, each in value.items()}

    return validated


# A large group's controller reads 100,000 of these a second: by hand it costs a tenth.
Offsets = Annotated[Mapping[TopicPartition, int], PlainValidator(_by_partition(checked_offset))]
KnownOffsets = Annotated[
    Mapping[TopicPartition, int | None], PlainValidator(_by_partition(_offset_if_known))
]
"""None where an offset is not known."""
