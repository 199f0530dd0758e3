"""Writes what values the Helm chart takes: `python -m tools.chart_schema`.

The settings files in them are checked by the names and bounds of the models that read them.
"""

import json
import sys
from pathlib import Path
from typing import Any

from pydantic.json_schema import models_json_schema

from binwright.inspect.settings_file import PROGRAMS

CHART = Path(__file__).parents[1] / "deploy" / "helm" / "binwright"
FILE = CHART / "values.schema.json"
LEFT_OUT = frozenset({"title", "default", "description", "pattern"})
"""Of the models: prose, and patterns, which are Python's, while Helm knows Go's."""

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
OBJECT: Schema = {"type": "object"}
NAME: Schema = {"type": "string", "minLength": 1}
QUANTITY: Schema = {"type": "string", "pattern": r"^([0-9]+[kMGTPE]i?)?$"}


def list_of(item: Schema) -> Schema:
    return {"type": "array", "items": item}


def closed(**properties: Schema) -> Schema:
    """Return the schema of an object with these fields and no others."""
    return {"type": "object", "additionalProperties": False, "properties": properties}


POD: dict[str, Schema] = {
    "resources": OBJECT,
    "nodeSelector": {"type": "object", "additionalProperties": TEXT},
    "tolerations": list_of(OBJECT),
}
REPLICAS: Schema = {"type": "integer", "minimum": 1}


def schema() -> Schema:
    """Return the schema of the chart's values."""
    settings, definitions = settings_schema()
    own = {"$ref": "#/$defs/Settings"}
    program: dict[str, Schema] = {"enabled": FLAG, "replicas": REPLICAS, "settings": own, **POD}
    values = closed(
        settings=own,
        lake=closed(
            claim=TEXT,
            size=QUANTITY,
            accessModes=list_of(NAME),
            path={"type": "string", "pattern": "^/"},
        ),
        secrets=closed(
            kafka=NAME, kafkaCa=NAME, lake=NAME, sparkToken=NAME, sparkTls=NAME, sparkCa=NAME
        ),
        images=closed(
            registry=TEXT,
            tag=TEXT,
            digests={
                "type": "object",
                "propertyNames": {"pattern": "^binwright-(monitor|controller|consumer|spark)$"},
                "additionalProperties": {"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"},
            },
            pullPolicy={"enum": ["", "Always", "IfNotPresent", "Never"]},
            pullSecrets=list_of(NAME),
        ),
        monitor=closed(replicas=REPLICAS, **POD),
        controller=closed(replicas=REPLICAS, allNamespaces=FLAG, nodeDrains=FLAG, **POD),
        consumer=closed(**POD),
        spark=closed(enabled=FLAG, tls=closed(enabled=FLAG, image=NAME), driverMemory=NAME, **POD),
        scaler=closed(allNamespaces=FLAG, **program),
        balancer=closed(**program),
        crds=closed(install=FLAG, keep=FLAG),
        restrictedTemplates=closed(enabled=FLAG),
        networkPolicies=closed(
            enabled=FLAG, egress=list_of(OBJECT), consumerEgress=list_of(OBJECT)
        ),
        **{"global": OBJECT},  # Helm gives it to every chart
    )
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return {**head, **values, "$defs": {"Settings": settings, **definitions}}


def settings_schema() -> tuple[Schema, Schema]:
    """Return the schema of a settings file, and the definitions that it refers to."""
    models = PROGRAMS
    found, defined = models_json_schema([(model, "validation") for model in models])
    definitions = defined["$defs"]
    properties: Schema = {}
    for model in models:  # the program that owns a table comes last
        name = found[model, "validation"]["$ref"].rpartition("/")[2]
        properties |= definitions.pop(name)["properties"]
    return _cleaned(closed(**properties)), _cleaned(definitions, names=True)


def _cleaned(part: Any, *, names: bool = False) -> Any:
    """Return a schema without what is left out, and without secrets: a ConfigMap has none.

    With `names`, the keys of `part` are names of something, and not of the schema's.
    """
    match part:
        case dict():
            return {
                key: _cleaned(value, names=not names and key in {"properties", "$defs"})
                for key, value in part.items()
                if (names or key not in LEFT_OUT) and not (names and _is_secret(value))
            }
        case list():
            return [_cleaned(each) for each in part]
    return part


def _is_secret(part: Any) -> bool:
    kinds = [part, *part.get("anyOf", [])] if isinstance(part, dict) else []
    return any(kind.get("format") == "password" for kind in kinds)


def text() -> str:
    """Return the file."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


def main() -> int:
    FILE.write_text(text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
