"""What is produced of evolving schemas, and what counts as a difference in the tables."""

from random import Random
from typing import Any

import pytest
from tests.chaos.evolving_schemas import FAULTS, Kind, Shape, first_shape, spoiled
from tests.chaos.evolving_topics import Version
from tests.chaos.landed_values import Bad, decoded, different
from tests.consumer.decode import avro, json_schema

from binwright.consumer.decide.columns import united
from binwright.consumer.decode.avro_schemas import AvroSchema
from binwright.tables.columns import Columns
from binwright.tables.json_schemas import JsonSchema

VERSIONS = 60
BAD = {"torn": Bad("malformed"), "unknown": Bad("schema_unknown"), "nameless": Bad("malformed")}


def shapes(kind: Kind) -> list[Shape]:
    drawn, found = Random(1), [first_shape(kind)]
    while len(found) < VERSIONS:
        found.append(found[-1].next(drawn, len(found)))
    return found


@pytest.mark.parametrize("kind", ["AVRO", "JSON"])
def test_every_version_differs_and_a_table_can_hold_all_of_them(kind: Kind) -> None:
    parse: type[AvroSchema | JsonSchema] = AvroSchema if kind == "AVRO" else JsonSchema
    columns: Columns = ()
    for number, shape in enumerate(shapes(kind)):
        parsed = avro.parsed(shape.schema) if kind == "AVRO" else json_schema.parsed(shape.schema)
        assert isinstance(parsed, parse)
        wider = united(columns, parsed.columns, widen=kind == "AVRO")
        assert wider != columns, number
        columns = wider


@pytest.mark.parametrize("kind", ["AVRO", "JSON"])
def test_a_value_is_decoded_as_it_was_produced_and_spoiled_ones_are_bad(kind: Kind) -> None:
    shape, drawn = shapes(kind)[-1], Random(2)
    versions = [Version(first_shape(kind), 6), Version(shape, 7)]
    for _ in range(50):
        value = shape.value(drawn, "note")
        written = shape.written(value, 7)
        found = decoded(versions, written)
        assert isinstance(found, dict)
        assert different(value, found) == []
        for fault in FAULTS:
            assert decoded(versions, spoiled(written, fault)) == BAD.get(fault)


@pytest.mark.parametrize(
    ("wanted", "there", "faults"),
    [
        ({"a": 1}, {"a": 1, "b": None}, []),
        ({"a": 1}, {"a": 1, "b": 2}, ["b is 2, and was None"]),
        ({"a": 1}, {}, ["a is None, and was 1"]),
        ({"a": {"x": 1}}, {"a": {"x": 2, "y": None}}, ["a.x is 2, and was 1"]),
        ({"a": [{"x": 1}]}, {"a": [{"x": 1, "y": 3}]}, ["a[0].y is 3, and was None"]),
        ({"a": [1]}, {"a": [1, 2]}, ["a is [1, 2], and was [1]"]),
    ],
)
def test_a_difference_is_named_by_its_path(
    wanted: dict[str, Any], there: dict[str, Any], faults: list[str]
) -> None:
    assert different(wanted, there) == faults
