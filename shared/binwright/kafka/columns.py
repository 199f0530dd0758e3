"""Decodes many records at once into columns, without an object for each record.

The fields of all records are read together, field by field, by numpy. Arrow copies keys, values and
headers out of the batches. What is unusual is left to the decoder of single records.
"""

from collections.abc import Sequence
from itertools import accumulate, chain
from struct import Struct
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from binwright.kafka.segments import Segment
from binwright.protocol.ports.kafka import HEADER_BYTES, RECORD_BYTES, Records

MOST_HEADERS = 32  # of a record; each needs a pass over all records

_MOST_BYTES = (1 << 31) - 1  # Arrow's positions are of 32 bits
_MORE, _LAST_SHIFT = 0x80, 56  # of varints: numbers of 64 bits and more are unusual
_HEAD = Struct(">q13xh4xqq")  # base offset, attributes, first timestamp, largest timestamp
_APPEND_TIME = 0x08  # in the attributes

_NO_HEADERS = pa.array([], pa.struct([("key", pa.string()), ("value", pa.binary())]))

_Ints = NDArray[np.int64]


class _UnusualError(Exception):
    """The records need the decoder of single records, which returns them or raises."""


def decode(segments: Sequence[Segment]) -> Records | None:
    """Return the records of all segments; None if single records must be looked at."""
    try:
        return _decode(segments)
    except (_UnusualError, IndexError, pa.ArrowInvalid):
        return None


def _decode(segments: Sequence[Segment]) -> Records:
    parts = [segment.stored[segment.positions[0] : segment.end] for segment in segments]
    _require(sum(map(len, parts)) <= _MOST_BYTES)
    data = np.frombuffer(parts[0] if len(parts) == 1 else b"".join(parts), np.uint8)
    counts = [len(segment.positions) for segment in segments]
    begins = accumulate(map(len, parts), initial=0)
    moved = [to - segment.positions[0] for to, segment in zip(begins, segments, strict=False)]
    at = np.array([*chain.from_iterable(s.positions for s in segments)], np.int64)
    at += np.repeat(np.array(moved, np.int64), counts)
    ends = np.append(at[1:], len(data))

    length, at = _varints(data, at)
    _require((at + length == ends).all())
    _, at = _varints(data, at)  # attributes
    since_first_ms, at = _varints(data, at)
    delta, at = _varints(data, at)
    bounds = np.empty((len(at), 4), np.int32)
    no_key, at = _skip(data, at, bounds[:, :2])
    no_value, at = _skip(data, at, bounds[:, 2:])
    header_count, at = _varints(data, at)
    headers, header_bytes = _headers(data, at, header_count, ends)

    heads = [_HEAD.unpack_from(segment.stored) for segment in segments]
    appended = [bool(attributes & _APPEND_TIME) for _, attributes, _, _ in heads]
    base = np.repeat(np.array([offset for offset, *_ in heads], np.int64), counts)
    times = [
        last if by_broker else first
        for (*_, first, last), by_broker in zip(heads, appended, strict=True)
    ]
    types = np.repeat(np.array(appended, np.int32), counts)
    offsets = base + delta
    firsts = np.cumsum([0, *counts[:-1]])
    _require((offsets[1:] > offsets[:-1]).all())
    _require((offsets[firsts] > np.array([segment.after for segment in segments])).all())
    columns: dict[str, Any] = {
        "offsets": offsets,
        "timestamps_ms": np.repeat(np.array(times, np.int64), counts)
        + since_first_ms * (1 - types),
        "timestamp_types": types,
        "keys": _pieces(data, bounds, 0, no_key),
        "values": _pieces(data, bounds, 2, no_value),
        "headers": headers,
    }
    size = RECORD_BYTES * len(offsets) + _total_size(bounds) + header_bytes
    return Records(**columns, bytes=size)


def _require(usual: Any) -> None:
    if not usual:
        raise _UnusualError


def _varints(data: NDArray[np.uint8], at: _Ints) -> tuple[_Ints, _Ints]:
    """Return the numbers at these positions, and the positions behind them."""
    byte, at = data[at].astype(np.int64), at + 1
    longer, shift = np.flatnonzero(byte >= _MORE), 7
    numbers = byte & (_MORE - 1) if len(longer) else byte
    while len(longer):
        _require(shift <= _LAST_SHIFT)
        byte = data[at[longer]].astype(np.int64)
        numbers[longer] |= (byte & (_MORE - 1)) << shift
        at[longer] += 1
        longer, shift = longer[byte >= _MORE], shift + 7
    return (numbers >> 1) ^ -(numbers & 1), at


def _skip(
    data: NDArray[np.uint8], at: _Ints, bounds: NDArray[np.int32]
) -> tuple[NDArray[np.bool_], _Ints]:
    """Write the bounds of the fields of variable size at these positions into `bounds`.

    Returns:
        Which of them are null, and the positions behind them.
    """
    size, at = _varints(data, at)
    _require(size.max() <= len(data))
    end = at + np.maximum(size, 0)
    bounds[:, 0], bounds[:, 1] = at, end
    return size < 0, end


def _pieces(
    data: NDArray[np.uint8], bounds: NDArray[np.int32], field: int, null: NDArray[np.bool_]
) -> Any:
    """Return a copy of the bytes between these bounds, which increase from row to row.

    To Arrow, `data` is one array: of the fields, and of what is between them.
    """
    if null.all():
        return pa.nulls(len(null), pa.binary())
    count = bounds.size - 1
    buffers = [None, *map(pa.py_buffer, (bounds.data, data.data))]
    wanted: Any = pa.array(np.arange(field, count, 4, dtype=np.int32), mask=null)
    return pa.Array.from_buffers(pa.binary(), count, buffers).take(wanted)


def _headers(data: NDArray[np.uint8], at: _Ints, counts: _Ints, ends: _Ints) -> tuple[Any, int]:
    """Return the headers of each record, of which there are `counts`, and their memory."""
    most = int(counts.max())
    _require(counts.min() >= 0 and most <= MOST_HEADERS)
    begins = np.concatenate(([0], np.cumsum(counts)))
    total = int(begins[-1])
    bounds, no_value = np.empty((total, 4), np.int32), np.empty(total, np.bool_)
    for number in range(most):
        rows = np.flatnonzero(counts > number)
        headers = begins[rows] + number
        positions = np.empty((len(rows), 4), np.int32)
        no_key, behind = _skip(data, at[rows], positions[:, :2])
        _require(not no_key.any())
        no_value[headers], at[rows] = _skip(data, behind, positions[:, 2:])
        bounds[headers] = positions
    _require((at == ends).all())
    items = _NO_HEADERS
    if total:
        keys = _pieces(data, bounds, 0, np.zeros(total, np.bool_)).cast(pa.string())
        items = pa.StructArray.from_arrays(
            [keys, _pieces(data, bounds, 2, no_value)], names=["key", "value"]
        )
    lists = pa.ListArray.from_arrays(pa.array(begins, pa.int32()), items)
    return lists, HEADER_BYTES * total + _total_size(bounds)


def _total_size(bounds: NDArray[np.int32]) -> int:
    return int((bounds[:, 1::2] - bounds[:, ::2]).sum(dtype=np.int64))
