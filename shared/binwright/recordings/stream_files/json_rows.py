"""The JSON form of a stream, read and written row by row: `[{"orders": {"0": 30}}, ...]`.

A row is a measurement: topic -> partition -> per cent of a consumer's capacity. Reading holds one
row and a piece of the file, however long the file is.
"""

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import IO, NewType

from binwright.protocol.errors import StreamError
from binwright.protocol.model import TopicPartition

PerCent = NewType("PerCent", float)
"""A rate in per cent of a consumer's capacity; above 100 no consumer can keep up."""

Row = Mapping[TopicPartition, PerCent]

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


def lines(rows: Iterable[Row]) -> Iterator[str]:
    """Yield a stream's text, a line for each row; equal streams give equal text."""
    before = "[\n"
    for row in rows:
        yield before + json.dumps(_nested(row))
        before = ",\n"
    yield "\n]\n"


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
            found = _SPACE.match(self._text, self._at)
            self._at = found.end() if found else self._at
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
    found: dict[TopicPartition, PerCent] = {}
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
            found[partition] = PerCent(rate)
    return found


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
