"""Writes the fields of custom resources from the settings behind them: `python -m tools.crds`.

A field's type, meaning, values and bounds are the setting's. What Kubernetes wants beyond that (a
bound of lists, rules, defaults) stays as it is in the file, and so does a narrower bound: what
anybody may create in a namespace is held to more than a settings file.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from binwright.controller.group_objects import spec
from binwright.group.config import ControllerSettings, Pin
from binwright.inspect.settings_file import descriptions
from binwright.kubernetes.objects import field_name
from binwright.protocol.section import Section
from binwright.runtime.settings.consumer import ConsumerSettings, LakeSettings, StagingSettings
from binwright.runtime.settings.group import Settings
from binwright.scaler.decide.config import ScaledGroupSettings, ScheduleSettings
from binwright.tables.masks import MaskSettings
from binwright.tables.settings import KeySettings, TableSettings

DEPLOY = Path(__file__).parents[1] / "deploy"
WIDTH = 118
OURS = ("description", "type", "enum", "minimum", "exclusiveMinimum", "maximum")
"""What the settings say of a field, in this order."""

MORE = {
    "mode": " approve: the one in status.proposal is, when the annotation "
    "binwright.dev/approve has its number."
}
"""By field: what only an object has."""
NO_NUMBER = " auto: as it measures it."
"""Of a setting that may be a word: a field of an object has one type."""

Schema = dict[str, Any]


class Fields(NamedTuple):
    """Some fields of a spec: where they stand, and what of a model is behind each."""

    path: tuple[str, ...]
    model: type[Section | Settings]
    names: Mapping[str, str]
    whole: bool = False  # nothing else stands there
    defaults: bool = False  # are the settings' own; else the settings of the program that reads it


def _all_of(model: type[Section | Settings]) -> dict[str, str]:
    return {field_name(name): name for name in model.model_fields}


ITEMS = ("items", "properties")
RESOURCES: dict[str, tuple[Fields, ...]] = {
    "base/consumergroups.yaml": (
        Fields((), Settings, {f: n for f, n in _all_of(Settings).items() if "opic" in f}),
        Fields((), ControllerSettings, spec.CONTROLLER),
        Fields((), ConsumerSettings, spec.CONSUMER),
        Fields(("control", "properties"), ControllerSettings, spec.CONTROL),
        Fields(("control", "properties", "pins", *ITEMS), Pin, spec.PIN, whole=True),
        Fields(("tables", *ITEMS), TableSettings, spec.TABLE, whole=True),
        Fields(("tables", *ITEMS, "key", "properties"), KeySettings, spec.KEY, whole=True),
        Fields(("tables", *ITEMS, "mask", "properties"), MaskSettings, spec.MASK, whole=True),
        Fields(("budgets", "properties"), ControllerSettings, spec.BUDGETS, whole=True),
        Fields(("sink", "properties"), LakeSettings, spec.LAKE),
        Fields(("sink", "properties"), StagingSettings, spec.STAGING),
    ),
    "scaler/scaledgroups.yaml": (
        Fields((), ScaledGroupSettings, _all_of(ScaledGroupSettings), defaults=True),
        Fields(
            ("schedules", *ITEMS),
            ScheduleSettings,
            _all_of(ScheduleSettings),
            whole=True,
            defaults=True,
        ),
    ),
}


def written(file: str) -> str:
    """Return what a resource's file should be."""
    resource = yaml.safe_load((DEPLOY / file).read_text())
    version = resource["spec"]["versions"][0]
    top = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    every = {name: field for fields in RESOURCES[file] for field, name in fields.names.items()}
    for fields in RESOURCES[file]:
        place = top
        for name in fields.path:
            place = place.setdefault(name, {})
        own = {name: field for field, name in fields.names.items()}
        _write(place, fields, every | own)  # a name may stand for several fields
    return "".join(f"{line}\n" for line in _lines(resource))


def _write(place: Schema, fields: Fields, shown: Mapping[str, str]) -> None:
    schema = fields.model.model_json_schema()
    for field, setting in fields.names.items():
        facts = _facts(schema["properties"][setting], schema.get("$defs", {}))
        facts["description"] = _described(fields, field, shown)
        place[field] = _merged(facts, place.get(field, {}))
    if fields.whole:
        for gone in place.keys() - fields.names.keys():
            del place[gone]


def _described(fields: Fields, field: str, shown: Mapping[str, str]) -> str:
    """Return the meaning of a field's setting, with the names of fields in it."""
    setting = fields.names[field]
    meaning = " ".join(descriptions(fields.model)[setting].split())
    text = re.sub(r"`(\w+)`", lambda found: shown.get(found[1], found[1]), meaning)
    text = f"{text.replace(NO_NUMBER, '')}{MORE.get(field, '')}"
    default = fields.model.model_fields[setting].default
    if fields.defaults and default and isinstance(default, str | float):
        shortest = f"{default:g}" if isinstance(default, float) else default
        return f"{text.rstrip('.')}. Unset: {shortest}."
    return text


def _facts(found: Schema, definitions: Mapping[str, Schema]) -> Schema:
    """Return what OpenAPI 3.0 knows of a JSON Schema of pydantic's."""
    if "anyOf" in found:  # the other ones are null, or a word that stands for a default
        found = found["anyOf"][0]
    if "$ref" in found:
        found = definitions[found["$ref"].rpartition("/")[2]]
    kept = ("type", "enum", "minimum", "maximum")
    facts: Schema = {key: found[key] for key in kept if key in found}
    if "const" in found:
        facts["enum"] = [found["const"]]
    if "exclusiveMinimum" in found:
        facts |= {"minimum": found["exclusiveMinimum"], "exclusiveMinimum": True}
    if facts["type"] == "array":
        facts["items"] = _facts(found["items"], definitions)
    elif isinstance(values := found.get("additionalProperties"), dict):
        facts["additionalProperties"] = _facts(values, definitions)
    return facts


def _merged(facts: Schema, known: Schema) -> Schema:
    kept = {key: value for key, value in known.items() if key not in OURS}
    for key in ("items", "additionalProperties"):
        if key in facts:
            kept[key] = _merged(facts[key], known.get(key, {}))
    merged = {key: facts[key] for key in OURS if key in facts}
    if known.get("minimum", 0) > facts.get("minimum", 0):
        merged["minimum"] = known["minimum"]
        merged.pop("exclusiveMinimum", None)
    if "maximum" in known:
        merged["maximum"] = min(known["maximum"], facts.get("maximum", known["maximum"]))
    return {key: merged[key] for key in OURS if key in merged} | kept


def _lines(node: Any, indent: int = 0) -> Iterator[str]:
    """Yield YAML: what fits on a line and is not described stands on one."""
    pad = " " * indent
    pairs = node.items() if isinstance(node, dict) else ((None, item) for item in node)
    for key, value in pairs:
        head = f"{pad}- " if key is None else f"{pad}{_flow(key)}:"
        flow = _flow(value)
        inline = f"{head}{flow}" if key is None else f"{head} {flow}"
        if _is_plain(value) and len(inline) <= WIDTH:
            yield inline
        elif isinstance(value, str):
            yield f"{head} >-"
            yield from _folded(value, indent + 2)
        elif key is None:
            first, *rest = _lines(value, indent + 2)
            yield head + first.lstrip()
            yield from rest
        else:
            yield head
            yield from _lines(value, indent + 2)


def _is_plain(node: Any) -> bool:
    """Return whether a value may stand on one line."""
    if isinstance(node, dict):
        return not node.keys() & {"description", "properties", "kind"} and all(
            map(_is_plain, node.values())
        )
    if isinstance(node, list):
        return not any(isinstance(each, dict) for each in node)
    return True


def _flow(node: Any) -> str:
    return yaml.safe_dump(
        node, default_flow_style=True, width=sys.maxsize, sort_keys=False, allow_unicode=True
    ).removesuffix("\n...\n").removesuffix("\n")  # fmt: skip


def _folded(text: str, indent: int) -> Iterator[str]:
    line = " " * indent
    for word in text.split():
        if len(line) + len(word) > WIDTH and line.strip():
            yield line.rstrip()
            line = " " * indent
        line += f"{word} "
    yield line.rstrip()


if __name__ == "__main__":
    for name in RESOURCES:
        (DEPLOY / name).write_text(written(name))
