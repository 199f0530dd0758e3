"""`binwright schema check` reads the columns of a file by the end of its name."""

import json
from pathlib import Path

import pytest
from pyspark.sql.types import IntegerType, LongType, StructType
from tests.consumer.decode.avro import record
from tests.consumer.decode.json_schema import objects
from tests.consumer.decode.protobuf import proto

from binwright.inspect.schema_check import changes, columns_in
from binwright.protocol.errors import SettingsError
from binwright.tables.columns import columns_text, parse_columns

POINT = 'syntax = "proto3"; package geo;\nimport "geo/point.proto";\nmessage Point { int32 x = 1; }'


def test_a_file_is_a_schema_or_the_text_of_columns(tmp_path: Path) -> None:
    avro, protobuf, text = (tmp_path / f"new.{end}" for end in ("avsc", "proto", "sql"))
    avro.write_text(json.dumps(record(("id", "int"))))
    protobuf.write_text(proto("int64 id", rest="message Refund { string why = 1; }"))
    text.write_text("id DOUBLE")
    assert columns_text(columns_in(avro)) == "id int"
    assert columns_text(columns_in(protobuf)) == "id bigint"
    assert columns_text(columns_in(protobuf, "shop.Refund")) == "why string"
    assert columns_text(columns_in(text)) == "id double"
    schema = tmp_path / "new.json"
    schema.write_text(json.dumps(objects(id="integer", any={})))
    assert columns_text(columns_in(schema)) == "id bigint, any string"


def test_a_protobuf_schema_imports_files_beside_it(tmp_path: Path) -> None:
    (tmp_path / "geo").mkdir()
    point = POINT.replace('import "geo/point.proto";', "")
    (tmp_path / "geo/point.proto").write_text(point)
    (tmp_path / "geo/line.proto").write_text(
        'syntax = "proto3"; package geo;\nimport public "geo/point.proto";\n'
    )
    file = tmp_path / "new.proto"
    file.write_text(proto("geo.Point at", head='\nimport "geo/line.proto";\n'))
    assert columns_text(columns_in(file)) == "at struct<x:int>"


def test_a_json_schema_uses_files_beside_it(tmp_path: Path) -> None:
    (tmp_path / "geo").mkdir()
    point = objects(x="integer", line={"$ref": "line.json#/$defs/name"})
    (tmp_path / "geo/point.json").write_text(json.dumps(point))
    (tmp_path / "line.json").write_text(json.dumps({"$defs": {"name": {"type": "string"}}}))
    file = tmp_path / "new.json"
    file.write_text(json.dumps(objects(at={"$ref": "geo/point.json"})))
    assert columns_text(columns_in(file)) == "at struct<x:bigint,line:string>"
    file.write_text(json.dumps(objects(at={"$ref": "geo/nothing.json"})))
    with pytest.raises(SettingsError) as refused:
        columns_in(file)
    assert str(refused.value) == f"{file}: at: refers to geo/nothing.json, which is not there"


@pytest.mark.parametrize(
    ("text", "message", "reason"),
    [
        (proto("int32 id"), "shop.Nobody", "has no message shop.Nobody"),
        (
            proto("int32 id", head='\nimport "not/there.proto";\n'),
            "",
            "is no Protobuf schema: not/t",
        ),
    ],
)
def test_what_is_no_schema_is_reported_with_its_file(
    tmp_path: Path, text: str, message: str, reason: str
) -> None:
    file = tmp_path / "new.proto"
    file.write_text(text)
    with pytest.raises(SettingsError) as refused:
        columns_in(file, message)
    assert str(refused.value).startswith(f"{file}: {reason}")


def test_files_that_import_each_other_are_read_once(tmp_path: Path) -> None:
    (tmp_path / "geo").mkdir()
    (tmp_path / "geo/point.proto").write_text(POINT)
    file = tmp_path / "new.proto"
    file.write_text(proto("geo.Point at", head='\nimport "geo/point.proto";\n'))
    with pytest.raises(SettingsError, match="File recursively imports itself"):
        columns_in(file)


def test_a_column_is_widened_where_the_settings_of_the_table_want_that() -> None:
    there = StructType().add("id", IntegerType()).add("wide", LongType())
    columns = parse_columns("id BIGINT, wide INT, new STRING, _other STRUCT<a: INT>")

    def kinds(*, by_value: bool, widen: bool) -> list[tuple[str, str]]:
        found = changes(columns, there, by_value=by_value, widen=widen)
        return [(each.column, each.kind) for each in found]

    added = [("new", "added"), ("_other", "added")]
    assert kinds(by_value=True, widen=True) == [("id", "widened"), *added]
    assert kinds(by_value=True, widen=False) == [("id", "kept"), ("wide", "kept"), *added]
    assert kinds(by_value=False, widen=False) == [("id", "refused"), ("wide", "refused"), *added]
