"""The page of types leaves out no type that the code maps."""

from google.protobuf.descriptor import FieldDescriptor
from tools.reference import types

from binwright.consumer.decode.avro_schemas import SIMPLE as AVRO_SIMPLE
from binwright.consumer.decode.avro_schemas import TICKS
from binwright.tables.columns import SIMPLE, VARIANT
from binwright.tables.json_schemas import FORMATS, INTEGERS
from binwright.tables.json_schemas import TYPES as JSON_TYPES

PAGE = types.page()


def section(title: str) -> str:
    return PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]


def lines(title: str) -> dict[str, str]:
    """Return the lines of a section by what is before the colon."""
    rows = [line.split("`: ", 1) for line in section(title).splitlines() if line.startswith("- `")]
    return {row[0].removeprefix("- `"): row[1] for row in rows}


def test_every_type_of_the_settings_has_a_line() -> None:
    assert {*SIMPLE, VARIANT} <= lines("`columns` of the settings").keys()


def test_every_type_of_avro_has_a_line() -> None:
    found = lines("Avro")
    kinds = {*AVRO_SIMPLE, "null", "array", "map", "record"}
    assert all(any(f'"{kind}"' in name or name == kind for name in found) for kind in kinds)
    assert all(any(f'"{tick}"' in name for name in found) for tick in TICKS)
    assert {*AVRO_SIMPLE} - {"enum", "fixed"} <= found.keys()


def test_every_type_of_protobuf_has_a_line() -> None:
    scalars = {
        name.removeprefix("TYPE_").lower()
        for name in vars(FieldDescriptor)
        if name.startswith("TYPE_")
    } - {"group", "message"}
    assert scalars <= lines("Protobuf").keys()


def test_every_type_and_format_of_json_schema_has_a_line() -> None:
    found = section("JSON Schema")
    for name in (*JSON_TYPES, *FORMATS, *INTEGERS):
        assert f'"{name}"' in found, name


def test_what_is_refused_has_its_reason() -> None:
    own = lines("`columns` of the settings")
    assert own["decimal(39,0)"].startswith("refused: there is no decimal(39,0)")
    assert lines("Protobuf")["Again"].startswith("`struct<again:string>`;")
    assert lines("JSON Schema")['{"$ref":"#"}'].startswith("`string`;")
    assert lines("JSON Schema")["false"] == types.NONE


def test_wider_types_are_those_that_delta_widens() -> None:
    assert lines("Wider columns")["float"] == "`double`"
    assert "string" not in lines("Wider columns")
