"""What several commands ask a person for, in the same words."""

from typing import Annotated

import typer

from binwright.shell.settings import Settings, load_settings

Topics = Annotated[str, typer.Option(help="Topics, separated by commas.")]
Spark = Annotated[str | None, typer.Option(help="A Spark Connect server, sc://HOST:PORT.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Bootstrap = Annotated[str | None, typer.Option(help="Kafka's address, HOST:PORT.")]


def settings_at(bootstrap_servers: str | None) -> Settings:
    """Return the settings, with another Kafka if one is named."""
    read = load_settings()
    if bootstrap_servers is None:
        return read
    kafka = read.kafka.model_copy(update={"bootstrap_servers": bootstrap_servers})
    return read.model_copy(update={"kafka": kafka})
