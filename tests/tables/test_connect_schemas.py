"""The schemas in values of Kafka Connect's JSON are read as far as they are any."""

from typing import Any

import pytest

from binwright.tables.connect_schemas import MOST_DEEP, MOST_PARTS, column_type, places


def nested(depth: int) -> dict[str, Any]:
    return {"type": "string"} if not depth else {"type": "array", "items": nested(depth - 1)}


@pytest.mark.parametrize(
    ("node", "kind"),
    [
        ({"type": "int8"}, "tinyint"),
        ({"type": "bytes"}, "binary"),
        ({"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal"}, "None"),
        ({"type": "array", "items": {"type": "float"}}, "array<float>"),
        ({"type": "array"}, "None"),
        ({"type": "array", "items": 7}, "None"),
        ({"type": "map", "keys": {"type": "string"}, "values": {"type": "int16"}},
         "map<string,smallint>"),
        ({"type": "map", "keys": {"type": "int8"}, "values": {"type": "int16"}}, "None"),
        ({"type": "map", "keys": {"type": "string"}}, "None"),
        ({"type": "map"}, "None"),
        ({"type": "struct", "fields": [{"field": "a b", "type": "boolean"}]},
         "struct<`a b`:boolean>"),
        ({"type": "struct", "fields": [{"field": "a", "type": "x"}]}, "None"),
        ({"type": "struct", "fields": [{"field": "a", "type": "int8"},
                                       {"field": "A", "type": "int8"}]}, "None"),
        ({"type": "struct", "fields": [7, {"type": "int8"}]}, "None"),
        ({"type": "struct", "fields": 7}, "None"),
        ({"type": ["int8"]}, "None"),
        (None, "None"),
        (nested(MOST_DEEP - 1), "array<" * (MOST_DEEP - 1) + "string" + ">" * (MOST_DEEP - 1)),
        (nested(MOST_DEEP), "None"),
    ],
)  # fmt: skip
def test_a_part_has_a_type_or_none(node: Any, kind: str) -> None:
    assert str(column_type(node)) == kind


def test_places_are_bounded_in_depth_and_number() -> None:
    assert [*places({"schema": nested(2)})] == ["payload", "payload[]", "payload[][]"]
    assert len(places({"schema": nested(100)})) == MOST_DEEP + 1
    fields = [{"field": f"f{n}", "type": "int8"} for n in range(2 * MOST_PARTS)]
    assert len(places({"schema": {"type": "struct", "fields": fields}})) == MOST_PARTS
    assert places({"schema": None}) == {}
