"""Writes the settings file: what a person named, and an entry for each topic of columns."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from binwright.cli.terminal import count
from binwright.inspect.init.topics import FoundTopic, Wanted
from binwright.inspect.init.words import figures_in_words, values_in_words
from binwright.protocol.names import BAD_SUFFIX
from binwright.runtime.settings.group import Settings
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.tables.columns import Columns, quoted
from binwright.tables.inferred_columns import Inferred

LISTED = 20
"""Fields that are left out, and topics that were not looked at, at most; others are counted."""
COLUMNS_GUIDE = "docs/how-to/columns.md"
REGISTRY = ["#[registry]", '#url = "https://registry.example.com"']


def settings_text(
    settings: Settings, wanted: Wanted, known: Sequence[FoundTopic], written: str
) -> str:
    """Return the file, in TOML.

    Args:
        settings: What was named by options and variables.
        wanted: The topics that land.
        known: What is known of them.
        written: When, as a date.
    """
    looked_at = [each for each in known if each.values is not None]
    parts = [
        _head(settings, wanted, written),
        "\n".join(["[kafka]", *_kafka(settings.kafka)]),
        "\n".join(["[lake]", *_lake(settings)]),
        *("\n".join(_topic(each, known)) for each in looked_at),
    ]
    if others := [each.name for each in known if each.values is None]:
        names = f"{', '.join(others[:LISTED])}{', …' if len(others) > LISTED else ''}"
        parts.append(f"# {count(len(others), 'topic')} not looked at land as bytes: {names}")
    if any(_names_schemas(each) for each in looked_at):
        parts.append("\n".join(["# The registry has the schemas that values name.", *REGISTRY]))
    return "\n\n".join(parts) + "\n"


def toml_string(text: str) -> str:
    """Return a basic string of TOML."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _head(settings: Settings, wanted: Wanted, written: str) -> str:
    lines = [
        f"# Settings of binwright, written by binwright init on {written} from what Kafka had.",
        "# `binwright settings` prints all there are. A variable of the environment overrides one:",
        "# BINWRIGHT_KAFKA__BOOTSTRAP_SERVERS.",
        "",
        f"group = {toml_string(settings.group)}",
    ]
    if wanted.topics:
        lines.append(f"topics = {_list(wanted.topics)}")
    if wanted.patterns:
        lines.append("# What is created later and matches lands too: as bytes, unless the")
        lines.append("# topic_patterns of a [[tables]] entry match it as well.")
        lines.append(f"topic_patterns = {_list(wanted.patterns)}")
        if excluded := settings.exclude_topic_patterns:
            lines.append(f"exclude_topic_patterns = {_list(excluded)}")
    return "\n".join(lines)


def _kafka(kafka: KafkaSettings) -> Iterator[str]:
    """Yield what was named of the connection, in the order of the settings; no secret."""
    for name in type(kafka).model_fields:
        value = getattr(kafka, name)
        if name not in kafka.model_fields_set or value is None:
            continue
        if isinstance(value, SecretStr):
            yield f"# {name}: from the variable BINWRIGHT_KAFKA__{name.upper()}"
        else:
            yield f"{name} = {_value(value)}"


def _lake(settings: Settings) -> Iterator[str]:
    yield f"path = {toml_string(settings.lake.path)}"
    if "spark" in settings.lake.model_fields_set:
        yield f"spark = {toml_string(settings.lake.spark)}"
    else:
        yield '#spark = "sc://HOST:15002"  # unset: binwright up starts one'


def _value(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int() | float():
            return f"{value}"
        case Path():
            return toml_string(str(value.absolute()))  # services run in other directories
        case _:
            return toml_string(value)


def _list(values: Sequence[str]) -> str:
    return f"[{', '.join(map(toml_string, values))}]"


def _topic(topic: FoundTopic, landed: Sequence[FoundTopic]) -> Iterator[str]:
    """Yield what is known of a topic, and its entry: as a comment where it is not certain."""
    yield f"# {topic.name}: {figures_in_words(topic)}"
    yield f"# Its newest values: {_printable(_sample(topic))}"
    if topic.is_compacted:
        yield "# It is compacted: what is replaced before it lands has no row."
    values = topic.values
    assert values is not None
    if _names_schemas(topic):
        yield "# It lands as bytes; to have columns, name the registry below and this:"
        is_json = values.kind == "json by schema"
        yield from _entry(topic, 'format = "json"' if is_json else 'format = "avro"  # "protobuf"?')
    elif not values.inferred.columns:
        yield f"# It lands as bytes; other formats: {COLUMNS_GUIDE}"
        yield from _left_out(values.inferred)
    elif why := _uncertain(topic, landed):
        yield f"# It lands as bytes: {why}. To have columns:"
        yield from _entry(topic, 'format = "json"', values.inferred.columns)
        yield from _left_out(values.inferred)
    else:
        entry = _entry(topic, 'format = "json"', values.inferred.columns)
        yield from (line.removeprefix("#") for line in entry)
        yield from _left_out(values.inferred)


def _sample(topic: FoundTopic) -> str:
    number = topic.values.values if topic.values else 0
    sample = f"{values_in_words(topic)} (sample of {number})" if number else values_in_words(topic)
    return f"{sample}; {topic.fault}" if number and topic.fault else sample


def _uncertain(topic: FoundTopic, landed: Sequence[FoundTopic]) -> str:
    """Return why a topic of JSON does not become a table of columns without a person."""
    if topic.values and topic.values.kind == "partly json":
        return f"the others would be bad records, in {topic.name}{BAD_SUFFIX}"
    bad = topic.name + BAD_SUFFIX
    if any(each.name == bad for each in landed):
        return f"the topic {bad} has the name of the table of its bad records"
    return ""


def _entry(topic: FoundTopic, form: str, columns: Columns = ()) -> Iterator[str]:
    """Yield an entry of tables, as comments."""
    yield "#[[tables]]"
    yield f"#topics = {_list([topic.name])}"
    yield f"#{form}"
    if columns:
        rows = [f"{quoted(column.name)} {column.type}" for column in columns]
        yield '#columns = """'
        yield from (f"#  {toml_string(row)[1:-1]}," for row in rows[:-1])
        yield f"#  {toml_string(rows[-1])[1:-1]}"
        yield '#"""'


def _left_out(inferred: Inferred) -> Iterator[str]:
    for each in inferred.left_out[:LISTED]:
        yield f"# left out: {_printable(each.path) or 'all'}: {each.why}"
    if (more := len(inferred.left_out) - LISTED) > 0:
        yield f"# and {count(more, 'field')} more"


def _names_schemas(topic: FoundTopic) -> bool:
    return topic.values is not None and topic.values.kind in {"by schema", "json by schema"}


def _printable(text: str) -> str:
    """Return text that a comment may have."""
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)
