"""`binwright schema check`: what new columns would change in a topic's table."""

import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from pyspark.sql.types import StructType
from rich.table import Table as RichTable

from binwright.cli.embedded_spark import running_lake
from binwright.cli.options import Json, Lake, Spark, TableName, settings_at
from binwright.cli.runner import progress_console, run_for_result, working_directory
from binwright.cli.terminal import Console, print_json, print_page
from binwright.consumer.decode.avro_schemas import AvroSchema
from binwright.consumer.decode.protobuf_compiler import compiled
from binwright.consumer.decode.protobuf_schemas import ProtobufSchema
from binwright.consumer.land.lake.table_columns import Difference, differences
from binwright.inspect.decide.table_facts import SHUT_OUT
from binwright.lake.lake_reader import delta_table, is_of_columns, reader_of
from binwright.protocol.errors import SettingsError
from binwright.runtime.run import EXIT_FAILED, EXIT_OK
from binwright.tables.columns import KAFKA_KEY, Column, Columns, Struct, parse_columns, stored
from binwright.tables.json_schemas import JsonSchema
from binwright.tables.schemas import SchemaRefused

TAKEN = frozenset(["added", "widened"])
"""Changes with which all values land."""
BY_SCHEMA = frozenset([".avsc", ".json", ".proto"])
"""Files of schemas whose values are tried one by one where a column has another type."""
_IMPORT = re.compile(r'^\s*import\s+(?:public\s+|weak\s+)?"([^"]+)"\s*;', re.MULTILINE)
_REFERENCE = re.compile(r'"\$ref"\s*:\s*"([^"#]+)')


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of a column, or of a field within one."""

    column: str
    kind: Literal["added", "widened", "kept", "refused"]
    there: str | None  # its type in the table; None: the table has none of this name
    wanted: str


def columns_in(file: Path, message: str = "") -> Columns:
    """Return the columns of a file: a schema, or the text of `columns`.

    Args:
        file: An Avro schema ends in `.avsc`, a Protobuf one in `.proto`, a JSON Schema in `.json`.
        message: Of a Protobuf schema, its full name; "": the first.

    Raises:
        SettingsError: It cannot be read, or is no schema; says why.
        RegistryUnavailable: protoc cannot be run.
    """
    try:
        text = file.read_text(encoding="utf-8")
        match file.suffix:
            case ".avsc":
                return AvroSchema(text).columns
            case ".proto":
                files = _used(file.parent, text, _IMPORT)
                return ProtobufSchema(compiled(text, files)).columns(message)
            case ".json":
                used = _used(file.parent, text, _REFERENCE)
                return stored(JsonSchema(text, used, is_whole=True).columns)
        return parse_columns(text)
    except SchemaRefused as exc:
        raise SettingsError(f"{file}: {exc}") from exc
    except (OSError, ValueError) as exc:
        raise SettingsError(f"{file}: {getattr(exc, 'strerror', None) or exc}") from exc


def _used(directory: Path, text: str, name_of: re.Pattern[str]) -> dict[str, str]:
    """Return the texts of the files that a schema names, by paths in its directory."""
    texts: dict[str, str] = {}
    left = name_of.findall(text)
    while left:
        name = left.pop()
        if name not in texts and (directory / name).is_file():
            texts[name] = (directory / name).read_text(encoding="utf-8")
            left += name_of.findall(texts[name])
    return texts


def changes(
    columns: Columns, there: StructType, *, by_value: bool, widen: bool = False
) -> tuple[Change, ...]:
    """Return what these columns would change in a table with Spark's schema `there`.

    Args:
        columns: Those wanted.
        there: Those of the table.
        by_value: Whether a column of another type stays, and each value is tried.
        widen: Whether the table's columns may become wider.
    """

    def kind(of: Difference) -> Literal["added", "widened", "kept", "refused"]:
        if of.actual is None:
            return "added"
        if widen and of.widens:
            return "widened"
        return "kept" if by_value else "refused"

    return tuple(
        Change(each.name, kind(each), each.actual, str(each.wanted))
        for each in differences(columns, there)
        if not (widen and each.fits)
    )


@dataclass(frozen=True, slots=True)
class Check:
    """The options of one check; what is None comes from the settings."""

    console: Console
    directory: Path
    table: str
    columns: Columns
    by_value: bool  # see `changes`
    spark: str | None
    lake: str | None

    async def run(self) -> tuple[Change, ...]:
        """Compare the columns with the table.

        Raises:
            SettingsError: The table is one of raw records.
            ExternalError: Spark does not answer.
        """
        settings = settings_at(None, lake=self.lake, spark=self.spark)
        path = settings.lake.table_path(self.table)
        topics = sorted({*settings.topics, self.table})
        targets = (each for topic in topics for each in settings.targets(topic))
        widen = any(t.decoded.widen for t in targets if t.name == self.table and t.decoded)
        async with (
            running_lake(self.directory, self.console.log, settings) as lake,
            reader_of(lake, self.table) as reader,
        ):
            return await reader.run(
                f"read the table at {path}", lambda s: self._compare(s, path, widen=widen)
            )

    def _compare(self, spark: Any, path: str, *, widen: bool) -> tuple[Change, ...]:
        table = delta_table(spark, path)
        if table is not None and not is_of_columns(table):
            raise SettingsError(
                f"the table at {path} is one of raw records: it does not become one of columns. "
                "Move it away, or name another lake"
            )
        there = StructType() if table is None else table.schema
        return changes(self.columns, there, by_value=self.by_value, widen=widen)


_READERS = ", ".join(SHUT_OUT["typeWidening"])
_THEN = {
    "added": "is added",
    "widened": f"is widened: not read any more by {_READERS}",
    "kept": "[yellow]stays: misfits are bad records",
    "refused": "[red]REFUSED: nothing lands",
}


def shown(column_changes: tuple[Change, ...]) -> RichTable:
    """Return a line for each change."""
    table = RichTable("column", "in the table", "in the file", "then")
    for each in column_changes:
        table.add_row(each.column, each.there or "", each.wanted, _THEN[each.kind])
    if not column_changes:
        table.add_row("", "", "", "nothing changes")
    return table


def command(
    table: TableName,
    *,
    schema: Annotated[
        Path,
        typer.Option(
            help="A schema of Avro (.avsc) or Protobuf (.proto), a JSON Schema (.json), or the "
            "text of `columns` of the settings."
        ),
    ],
    message: Annotated[
        str, typer.Option(help="A message of a .proto by its full name; unset, the first.")
    ] = "",
    key: Annotated[bool, typer.Option("--key", help="It is the schema of the keys.")] = False,
    spark: Spark = None,
    lake: Lake = None,
    json_: Json = False,
) -> None:
    """Say what a new schema would change in a table. Exit code 1 if a column has another type."""
    console = progress_console(json_=json_)
    columns = columns_in(schema, message)
    if key:
        columns = (Column(KAFKA_KEY, Struct(columns)),)
    with working_directory(None) as directory:
        by_value = schema.suffix in BY_SCHEMA
        check = Check(console, directory, table, columns, by_value, spark, lake)
        column_changes = run_for_result(check.run)
    if json_:
        print_json([asdict(each) for each in column_changes])
    else:
        print_page(console, shown(column_changes))
    raise typer.Exit(EXIT_OK if all(each.kind in TAKEN for each in column_changes) else EXIT_FAILED)
