"""Streams: rows of rates in per cent of a consumer's capacity, in memory and as JSON.

A row is a measurement: topic -> partition -> per cent. As JSON, `[{"orders": {"0": 30}}, ...]` is
the format of the paper's recordings. A stream does not say how long a row lasts. Reading holds one
row and a piece of the file, however long the file is.
"""

import json
import re
import sys
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import BytesIO, StringIO, TextIOWrapper
from itertools import count, pairwise
from pathlib import Path
from typing import IO, NewType, overload

from binwright.protocol.errors import StreamError
from binwright.protocol.model import BytesPerSecond, TopicPartition

PerCent = NewType("PerCent", float)
"""A rate in per cent of a consumer's capacity; above 100 no consumer can keep up."""

Row = Mapping[TopicPartition, PerCent]
"""A measurement: the rate of every partition that there is."""

Stream = Sequence[Row]

PIECE = 1 << 18
"""Characters that are read at once; a longer row is read in pieces that double."""

EXACT = 2.0**53  # below it floats hold whole numbers exactly
SHOWN = 40  # characters of a wrong value in an error
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,8}")
_SPACE = re.compile(r"[ \t\n\r]*")

# Partitions by topic and number, as text: each is made once, not once for each row.
_Known = dict[str, dict[str, TopicPartition]]


def read_rows(file: IO[str], piece: int = PIECE) -> Iterator[dict[TopicPartition, PerCent]]:
    """Yield the rows of a stream.

    Partitions may come and go from row to row. Rates may be fractions, and above 100.

    Args:
        file: Of the stream's text.
        piece: Characters to read at once.

    Raises:
        StreamError: It is not a stream; names the fault and its row (counted from 0), topic and
            partition. Rows before the fault were yielded.
    """
    known: _Known = {}
    for number, value in enumerate(_Array(file, piece).values()):
        yield _row(f"row {number}", value, known)


def stream_lines(rows: Iterable[Row]) -> Iterator[str]:
    """Yield a stream's text, a line for each row; equal streams give equal text."""
    before = "[\n"
    for row in rows:
        yield before + json.dumps(_nested(row))
        before = ",\n"
    yield "\n]\n"


def as_rates(row: Row, capacity: BytesPerSecond) -> dict[TopicPartition, BytesPerSecond]:
    """Return a row as bytes/s for consumers of `capacity` bytes/s."""
    # Multiplied first: with a capacity of 100 the rates are exactly the per cents.
    return {p: BytesPerSecond(rate * capacity / 100) for p, rate in row.items()}


def dump(stream: Iterable[Row]) -> str:
    """Return a stream as JSON, one row a line; equal streams give equal text."""
    return "".join(stream_lines(stream))


def parse(text: str | bytes) -> list[dict[TopicPartition, PerCent]]:
    """Read a stream back.

    Partitions may come and go from row to row. Rates may be fractions, and above 100.

    Raises:
        StreamError: It is not a stream; names the fault and its row (counted from 0), topic and
            partition.
    """
    file = TextIOWrapper(BytesIO(text), "utf-8-sig") if isinstance(text, bytes) else StringIO(text)
    return list(read_rows(file))


def write(path: Path, stream: Iterable[Row]) -> None:
    """Write a stream to a file; raise `StreamError` if it cannot be written."""
    try:
        with path.open("w", encoding="ascii") as file:
            file.writelines(stream_lines(stream))
    except OSError as exc:
        raise StreamError(f"{path}: {exc}") from exc


def largest_step(stream: Stream) -> PerCent:
    """Return the largest change of a rate from one measurement to the next."""
    return PerCent(
        max(
            (
                abs(rate - before[partition])
                for before, row in pairwise(stream)
                for partition, rate in row.items()
                if partition in before
            ),
            default=0.0,
        )
    )


_Partitions = tuple[TopicPartition, ...]


class CompactStream(Sequence[Row]):
    """A stream of which each rate takes 8 bytes, and 8 more where partitions change their order.

    Rows are made anew at each access: keep one instead of asking for it twice.
    """

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        # Rows of the same partitions in the same order share one tuple of them.
        self._shared: dict[_Partitions, _Partitions] = {}
        self._rows: list[tuple[_Partitions, array[float]]] = []
        for row in rows:
            self.append(row)

    def append(self, row: Row) -> None:
        """Add a row at the end."""
        partitions = tuple(row)
        self._rows.append((self._shared.setdefault(partitions, partitions), _numbers(row)))

    @property
    def partitions(self) -> list[TopicPartition]:
        """Return the partitions of all rows, sorted."""
        return sorted({one for partitions in self._shared for one in partitions})

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | Sequence[Row]:
        """Return a row, or several."""
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        partitions, rates = self._rows[index]
        return dict(zip(partitions, map(PerCent, rates), strict=True))


def _numbers(row: Row) -> "array[float]":
    """Return the rates; whole numbers stay whole, so that they are written as they were read."""
    try:
        return array("q", row.values())
    except (TypeError, OverflowError):
        return array("d", row.values())


def _nested(row: Row) -> dict[str, dict[str, float]]:
    topics: dict[str, dict[str, float]] = {}
    for partition, rate in row.items():
        # A rate that was computed is a float: 30.0 is written as the paper has it, 30.
        whole = rate < EXACT and float(rate).is_integer()
        numbers = topics.setdefault(partition.topic, {})
        numbers[str(partition.partition)] = int(rate) if whole else rate
    return topics


class _Array:
    """The values of a JSON array in a file, decoded one at a time."""

    def __init__(self, file: IO[str], piece: int) -> None:
        self._file, self._piece = file, piece
        self._decode = json.JSONDecoder().raw_decode
        self._text, self._at, self._ended = "", 0, False
        self._where = ""

    def values(self) -> Iterator[object]:
        if self._next() != "[":
            value = self._value()
            raise StreamError(f"expected a list of measurements, got {_kind(value)}")
        self._at += 1
        if self._next() == "]":
            raise StreamError("the stream is empty: not one measurement")
        for number in count():
            self._where = f"row {number}: "
            yield self._value()
            if (delimiter := self._next()) not in {",", "]"}:
                raise self._fault("Expecting ',' or ']'")
            self._at += 1
            if delimiter == "]":
                break
        if self._next():
            raise self._fault("Extra data")

    def _value(self) -> object:
        """Decode the value that begins here; read on until all of it is there."""
        self._next()
        while True:
            try:
                value, end = self._decode(self._text, self._at)
            except RecursionError as exc:
                raise self._fault(str(exc)) from exc
            except json.JSONDecodeError as exc:
                if self._ended:
                    raise self._fault(exc.msg) from exc
            else:
                # At the end of the text a number may have further digits.
                if end < len(self._text) or self._ended:
                    self._at = end
                    return value
            self._read()

    def _next(self) -> str:
        """Return the next character that is no space, "" at the end of the file."""
        while True:
            space = _SPACE.match(self._text, self._at)
            self._at = space.end() if space else self._at
            if self._at < len(self._text) or self._ended:
                return self._text[self._at : self._at + 1]
            self._read()

    def _read(self) -> None:
        rest = self._text[self._at :]
        try:
            # As much as there is already: a long row is decoded a few times, not once a piece.
            more = self._file.read(max(self._piece, len(rest)))
        except UnicodeDecodeError as exc:
            raise self._fault(f"not UTF-8: {exc.reason}") from exc
        self._ended = not more
        self._text, self._at = rest + more, 0

    def _fault(self, reason: str) -> StreamError:
        return StreamError(f"{self._where}not JSON: {reason}")


def _row(where: str, value: object, known: _Known) -> dict[TopicPartition, PerCent]:
    row: dict[TopicPartition, PerCent] = {}
    for topic, partitions in _object(where, value, "topics").items():
        inside = f"{where}, topic {topic!r}"
        if (numbers := known.get(topic)) is None:
            if not _TOPIC.fullmatch(topic):
                raise StreamError(f"{where}: not a topic's name: {topic!r}")
            numbers = known[topic] = {}
        for number, rate in _object(inside, partitions, "partitions").items():
            if (partition := numbers.get(number)) is None:
                if not _NUMBER.fullmatch(number):
                    raise StreamError(f"{inside}: not a partition's number: {number!r}")
                partition = numbers[number] = TopicPartition(topic, int(number))
            if not isinstance(rate, int | float) or isinstance(rate, bool):
                where = f"{inside}, partition {number}"
                raise StreamError(f"{where}: expected a number of per cents, got {_kind(rate)}")
            # NaN fails this comparison, too.
            if not 0 <= rate <= sys.float_info.max:
                where = f"{inside}, partition {number}"
                raise StreamError(f"{where}: per cents must be finite and >= 0, got {_short(rate)}")
            row[partition] = PerCent(rate)
    return row


def _object(where: str, value: object, of: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise StreamError(f"{where}: expected an object of {of}, got {_kind(value)}")
    if not value:
        raise StreamError(f"{where}: no {of} in it")
    return value


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool() | int() | float():
            return _short(value)
        case str():
            return f"text {_short(value)}"
        case list():
            return f"a list of {len(value)}"
        case _:
            return "an object"


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
