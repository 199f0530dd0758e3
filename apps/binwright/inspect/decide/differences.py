"""How the rows of a table differ from the records that they were made of."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

Row = Mapping[str, Any]
"""A record by the names of its columns; `row` has its values, `bad` what is wrong with it."""
Place = tuple[int, int]
"""Partition, offset."""

OF_RECORD = ("timestamp_type", "key", "headers")
SHOWN = 60  # characters of a value
NONE_ERASED: Mapping[Place, Sequence[Row]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ValueDifference:
    """A column of a row that has another value than its record; without a name, the whole row."""

    partition: int
    offset: int
    column: str
    kafka: str
    table: str


@dataclass(slots=True)
class Comparison:
    """What was found about the records of a sample."""

    compared: int = 0
    bad: int = 0  # of those: records that are bad in both
    waiting: int = 0  # records that have not landed
    erased: int = 0  # records whose rows a person had erased
    mended: int = 0  # records that landed as bad ones, and would be rows now
    differences: list[ValueDifference] = field(default_factory=list)


def compare(
    records: Sequence[Row],
    rows: Mapping[Place, Sequence[Row]],
    bad: Mapping[Place, Sequence[Row]],
    erased: Mapping[Place, Sequence[Row]] = NONE_ERASED,
) -> Comparison:
    """Compare records, decoded again, with what has landed of them, and what of that was erased.

    Rows with another timestamp are of an earlier log of the topic. Names are compared as Spark
    does, whatever their case; columns that the settings do not name are not looked at.
    """
    comparison = Comparison()
    for record in records:
        place, fault = (record["partition"], record["offset"]), record["bad"]
        row, landed_bad = _of(record, rows.get(place, ())), _of(record, bad.get(place, ()))
        if row is None and landed_bad is None:
            was_there = _of(record, erased.get(place, ())) is not None
            comparison.erased += was_there
            comparison.waiting += not was_there
            continue
        comparison.compared += 1
        if row is not None:
            comparison.differences += _of_row(place, record, row)
        elif fault is None:
            comparison.mended += 1
        else:
            comparison.bad += 1
            comparison.differences += _pairs(place, {"value": fault["value"]}, landed_bad or {})
    return comparison


def _of(record: Row, landed: Sequence[Row]) -> Row | None:
    return next((row for row in landed if row["timestamp"] == record["timestamp"]), None)


def _of_row(place: Place, record: Row, row: Row) -> Iterator[ValueDifference]:
    if (fault := record["bad"]) is not None:
        yield ValueDifference(*place, "", _shown(fault["reason"]), "a row")
        return
    yield from _pairs(place, {name: record[name] for name in OF_RECORD}, row)
    yield from _pairs(place, record["row"] or {}, row["row"] or {})


def _pairs(place: Place, kafka: Row, table: Row) -> Iterator[ValueDifference]:
    there = {name.casefold(): value for name, value in table.items()}
    for name, value in kafka.items():
        landed = there.get(name.casefold())
        if not same(value, landed):
            yield ValueDifference(*place, name, _shown(value), _shown(landed))


def same(kafka: Any, table: Any) -> bool:
    """Return whether two values are the same; a struct may have more fields in the table."""
    if isinstance(kafka, dict) and isinstance(table, dict):
        there = {name.casefold(): value for name, value in table.items()}
        return all(same(value, there.get(name.casefold())) for name, value in kafka.items())
    if isinstance(kafka, list | tuple) and isinstance(table, list | tuple):
        return len(kafka) == len(table) and all(map(same, kafka, table))
    return bool(kafka == table or (kafka != kafka and table != table))  # noqa: PLR0124 - NaN


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"
