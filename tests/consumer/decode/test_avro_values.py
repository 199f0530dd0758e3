"""Values are decoded by the schemas that their headers name."""

import pyarrow as pa
from tests.consumer.decode.avro import parsed, record, written

from binwright.consumer.decode.arrow_types import BAD, row_type
from binwright.consumer.decode.avro_values import AvroDecoder
from binwright.consumer.decode.one_by_one import Bad
from binwright.tables.columns import parse_columns

ONE, TWO = record(("id", "int")), record(("id", "long"), ("item", "string"))
COLUMNS = parse_columns("id bigint, item string")


def test_each_value_is_read_by_its_own_schema() -> None:
    decoder = AvroDecoder(
        COLUMNS,
        {
            7: parsed(ONE),
            8: parsed(TWO),
            9: Bad("schema_unknown", "no 9"),
            10: parsed(record(("id", "string"))),
        },
    )  # fmt: skip
    values = [
        written(ONE, {"id": 1}, 7),
        written(TWO, {"id": 2, "item": "tea"}, 8),
        None,
        b"",
        b'{"id":1}',
        written(ONE, {"id": 1}, 9),
        written(record(("id", "string")), {"id": "x"}, 10),
        b"\x00\x00\x00\x00\x07",
    ]
    rows, bad = decoder.decode(pa.array(values, pa.binary()))
    assert (rows.type, bad.type) == (row_type(COLUMNS), BAD)
    assert rows.to_pylist() == [
        {"id": 1, "item": None}, {"id": 2, "item": "tea"}, {"id": None, "item": None},
        None, None, None, None, None,
    ]  # fmt: skip
    assert [why and (why["kind"], why["reason"]) for why in bad.to_pylist()] == [
        None, None, None,
        ("malformed", "needs 0 and a schema's id in front, has the string ''"),
        ("malformed", "needs 0 and a schema's id in front, has the string '7b 22 69 64 22'"),
        ("schema_unknown", "no 9"),
        ("incompatible", "schema 10: id needs bigint, has string"),
        ("malformed", "is no value of its schema: IndexError index out of range"),
    ]  # fmt: skip
    assert [why and why["value"] for why in bad.to_pylist()][3:] == values[3:]
