"""Options that several commands share, and how they override the settings."""

from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from binwright.runtime.settings.group import Settings, load_settings
from binwright.runtime.settings.loading import load
from binwright.runtime.settings.programs import ProgramSettings

Program = TypeVar("Program", bound=ProgramSettings)

Topics = Annotated[str, typer.Option(help="Topics, separated by commas; else the settings'.")]
TableName = Annotated[str, typer.Argument(help="Its name: its topic's, or another.")]
Lake = Annotated[str | None, typer.Option(help="Where the tables are; else the settings'.")]
Group = Annotated[str | None, typer.Option(help="The group's name; else the settings'.")]
Spark = Annotated[
    str | None,
    typer.Option(help="Spark Connect, sc://HOST:PORT; else the settings', else one is embedded."),
]
OptionalSpark = Annotated[
    str | None, typer.Option(help="A Spark Connect server, sc://HOST:PORT; else one is embedded.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Wide = Annotated[
    bool, typer.Option("--wide", help="Every column, although the terminal is narrower.")
]
Seed = Annotated[int, typer.Option(help="The same seed gives the same rates.")]
Bootstrap = Annotated[
    str | None, typer.Option(help="Kafka's address, HOST:PORT; else the settings'.")
]

ControllerSeconds = Annotated[
    float, typer.Option("--timeout", min=1, help="Seconds to wait for a controller.")
]
CONTROLLER_S = 60.0


def settings_at(
    bootstrap_servers: str | None,
    *,
    group: str | None = None,
    topics: tuple[str, ...] = (),
    lake: str | None = None,
    spark: str | None = None,
    token_file: Path | None = None,
) -> Settings:
    """Return the settings; what an option names overrides the file and the environment.

    Args:
        bootstrap_servers: Kafka's address.
        group: The group's name.
        topics: Instead of the settings' topics and patterns; none: those of the settings.
        lake: Where the tables are.
        spark: Spark Connect servers.
        token_file: With their token.

    Raises:
        SettingsError: A value or key is wrong; names every fault.
    """
    overrides: dict[str, Any] = {"topics": topics, "topic_patterns": ()} if topics else {}
    if group is not None:
        overrides["group"] = group
    options: dict[str, dict[str, Any]] = {
        "kafka": {"bootstrap_servers": bootstrap_servers},
        "lake": {"path": lake, "spark": spark, "token_file": token_file},
    }
    for section, values in options.items():
        overrides[section] = {name: value for name, value in values.items() if value is not None}
    return load_settings(**overrides)


def program_settings_at(program: type[Program], bootstrap_servers: str | None) -> Program:
    """Return what a program reads; an address that an option names overrides the settings'."""
    named = {} if bootstrap_servers is None else {"kafka": {"bootstrap_servers": bootstrap_servers}}
    return load(program, **named)


def named_kafka(settings: Settings) -> str | None:
    """Return Kafka's address if an option, the file or the environment names it."""
    named = "bootstrap_servers" in settings.kafka.model_fields_set
    return settings.kafka.bootstrap_servers if named else None


def named_spark(settings: Settings) -> str | None:
    """Return the Spark servers if an option, the file or the environment names them."""
    return settings.lake.spark if "spark" in settings.lake.model_fields_set else None
