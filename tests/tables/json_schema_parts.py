"""Parts of JSON Schemas, and their columns as text."""

import json
from typing import Any

from binwright.tables.columns import columns_text
from binwright.tables.json_schemas import JsonSchema

TEXT, WHOLE, NULL = {"type": "string"}, {"type": "integer"}, {"type": "null"}
AT = {"type": "string", "format": "date-time"}
DECIMAL = {
    "type": "number",
    "connect.type": "bytes",
    "title": "org.apache.kafka.connect.data.Decimal",
    "connect.parameters": {"scale": "2"},
}


def objects(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def columns(schema: Any, **references: Any) -> str:
    texts = {name: json.dumps(each) for name, each in references.items()}
    return columns_text(JsonSchema(json.dumps(schema), texts).columns)


POINT = objects(x=WHOLE)
