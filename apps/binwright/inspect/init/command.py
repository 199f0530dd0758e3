"""The command: asks for what is missing, looks at Kafka, writes the file."""

import os
import shlex
import sys
import tomllib
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from binwright.cli.options import Group, named_kafka
from binwright.cli.runner import (
    ProgressConsole,
    own_command,
    progress_console,
    run_for_result,
    split,
)
from binwright.cli.terminal import TerminalColumn, fitting_table, page_console, print_page
from binwright.inspect.init.file_text import settings_text
from binwright.inspect.init.topics import (
    Figures,
    FoundTopic,
    Wanted,
    by_importance,
    look_into,
    measured_topics,
    parse_wanted,
    selection,
)
from binwright.inspect.init.words import kept, rate, size, values_in_words
from binwright.protocol.errors import SettingsError
from binwright.runtime.settings.group import Settings, load_settings
from binwright.runtime.settings.programs import FILE_VARIABLE

OUTPUT = "binwright.toml"
SHOWN = 30
"""Topics in a table; others are counted."""
CONNECTION = "Connection (else the variables BINWRIGHT_KAFKA__…)"

Values = dict[str, Any]


def command(
    *,
    bootstrap_servers: Annotated[
        str | None,
        typer.Option("--bootstrap-servers", "--brokers", help="Kafka's address, HOST:PORT."),
    ] = None,
    topics: Annotated[
        str, typer.Option(help="Names and patterns (RE2) of topics, separated by commas.")
    ] = "",
    lake: Annotated[str | None, typer.Option(help="Where the tables will be.")] = None,
    group: Group = None,
    output: Annotated[
        Path | None, typer.Option(help=f"The file; else that of --settings, else {OUTPUT}.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    measure_s: Annotated[
        float, typer.Option(min=0, max=600, help="Time to measure rates, seconds; 0: none.")
    ] = 5.0,
    security_protocol: Annotated[
        str | None,
        typer.Option(
            help="PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.", rich_help_panel=CONNECTION
        ),
    ] = None,
    sasl_mechanism: Annotated[
        str | None,
        typer.Option(
            help="PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER or GSSAPI.",
            rich_help_panel=CONNECTION,
        ),
    ] = None,
    sasl_username: Annotated[
        str | None, typer.Option(help="User name, with SASL.", rich_help_panel=CONNECTION)
    ] = None,
    sasl_password_file: Annotated[
        Path | None,
        typer.Option(help="A file with the password.", rich_help_panel=CONNECTION),
    ] = None,
    ssl_ca_file: Annotated[
        Path | None,
        typer.Option(help="PEM file of the certificate authority.", rich_help_panel=CONNECTION),
    ] = None,
) -> None:
    """Write a settings file, with columns for topics of JSON, from a look at Kafka.

    Asks for what no option names, in a terminal. Kafka is only read.
    """
    named = os.environ.pop(FILE_VARIABLE, None)  # not read: it is the file to be written
    file = output or Path(named or OUTPUT)
    _check_file(file, force=force)
    kafka = {
        "bootstrap_servers": bootstrap_servers,
        "security_protocol": security_protocol,
        "sasl_mechanism": sasl_mechanism,
        "sasl_username": sasl_username,
        "sasl_password_file": sasl_password_file,
        "ssl_ca_file": ssl_ca_file,
    }
    wanted = parse_wanted(split(topics))
    settings = _settings({"group": group, "kafka": kafka, "lake": {"path": lake}}, wanted)
    wanted = wanted or Wanted(settings.topics, settings.topic_patterns)
    console = progress_console()
    figures = run_for_result(lambda: measured_topics(settings, wanted, measure_s, console.log))
    if not wanted:
        wanted = _chosen(settings, figures)
        figures = {t: f for t, f in figures.items() if selection(settings, wanted).includes(t)}
    known = run_for_result(lambda: look_into(settings, figures))
    _write(
        file,
        settings_text(settings, wanted, known, f"{datetime.now().astimezone():%Y-%m-%d}"),
        force=force,
    )
    _report(console, file, known)


def _check_file(file: Path, *, force: bool) -> None:
    """Raise `SettingsError` before anything is asked, if the file could not be written."""
    if file.exists() and not force:
        raise SettingsError(
            f"{file} exists: name another file (--output), or overwrite it (--force)"
        )
    if not file.parent.is_dir():
        raise SettingsError(f"--output: there is no directory {file.parent}")


def _settings(options: Values, wanted: Wanted) -> Settings:
    """Return the settings of options, variables and answers.

    Raises:
        SettingsError: A value is wrong, or one is missing and there is no terminal to ask in.
    """
    settings = load_settings(**_named(options))
    no_kafka = named_kafka(settings) is None
    no_lake = "path" not in settings.lake.model_fields_set
    no_topics = not (wanted or settings.topics or settings.topic_patterns)
    if not sys.stdin.isatty():
        missing = {"--bootstrap-servers": no_kafka, "--topics": no_topics, "--lake": no_lake}
        if names := [name for name, is_missing in missing.items() if is_missing]:
            raise SettingsError(f"name {', '.join(names)}: there is no terminal to ask in")
    if not (no_kafka or no_lake):
        return settings
    if no_kafka:
        options["kafka"]["bootstrap_servers"] = _asked("Kafka's address", "localhost:9092")
    if no_lake:
        options["lake"]["path"] = _asked("Where the tables will be", "lake")
    if "group" not in settings.model_fields_set:
        options["group"] = _asked("The group's name", settings.group)
    return load_settings(**_named(options))


def _named(options: Values) -> Values:
    """Return the options that are named, those of sections too."""
    named = {
        name: _named(value) if isinstance(value, dict) else value for name, value in options.items()
    }
    return {name: value for name, value in named.items() if value is not None}


def _asked(question: str, default: str | None = None) -> str:
    return str(typer.prompt(question, default=default, err=True))


def _chosen(settings: Settings, figures: Figures) -> Wanted:
    """Show the topics that could land, and ask which do, until some are named that are there."""
    _print_topics(figures)
    while True:
        answer = _asked("Topics, or patterns as in orders-.*, separated by commas; .* for all")
        try:
            wanted = parse_wanted(split(answer))
        except SettingsError as exc:
            typer.echo(exc, err=True)
            continue
        if missing := [topic for topic in wanted.topics if topic not in figures]:
            typer.echo(f"no such topic: {', '.join(missing)}", err=True)
        elif not any(map(selection(settings, wanted).includes, figures)):
            typer.echo("no topic matches", err=True)
        else:
            return wanted


def _write(file: Path, text: str, *, force: bool) -> None:
    """Write the file, once it is known that it can be loaded.

    Raises:
        SettingsError: What was found does not go together with the variables.
    """
    load_settings(**tomllib.loads(text))
    with file.open("w" if force else "x", encoding="utf-8") as output:
        output.write(text)


def _print_topics(figures: Figures) -> None:
    columns = (
        TerminalColumn("topic", "left", fold=True),
        TerminalColumn("partitions"),
        TerminalColumn("size"),
        TerminalColumn("rate"),
    )
    ranked = by_importance(figures)
    rows = [
        (topic, f"{figures[topic].partitions:,}", size(figures[topic]), rate(figures[topic]))
        for topic in ranked[:SHOWN]
    ]
    _print_table(columns, rows, len(ranked))


def _report(console: ProgressConsole, file: Path, known: Sequence[FoundTopic]) -> None:
    """Print what was found, and what to run next."""
    columns = (
        TerminalColumn("topic", "left", fold=True),
        TerminalColumn("partitions"),
        TerminalColumn("size"),
        TerminalColumn("rate"),
        TerminalColumn("kept"),
        TerminalColumn("values", "left", fold=True),
    )
    rows = [
        (
            each.name,
            f"{each.figures.partitions:,}",
            size(each.figures),
            rate(each.figures),
            kept(each),
            values_in_words(each),
        )
        for each in known[:SHOWN]
    ]
    _print_table(columns, rows, len(known))
    console.copyable(f"written: {file}")
    binwright, name = own_command(), shlex.quote(str(file))
    console.copyable(f"check:   {binwright} doctor --settings {name}")
    console.copyable(f"land:    {binwright} up --settings {name}")


def _print_table(
    columns: Sequence[TerminalColumn], rows: Sequence[Sequence[str]], total: int
) -> None:
    page = page_console()
    print_page(page, fitting_table(columns, rows, page.width))
    if total > len(rows):
        page.print(f"and {total - len(rows):,} more")
