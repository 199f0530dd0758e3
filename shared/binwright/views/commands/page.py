"""`binwright page`: the live page in a browser, from the topics alone, wherever this runs.

Programs get the same at `/status` (JSON), and Prometheus at `/metrics`.
"""

from typing import Annotated

import typer
from rich.console import Console

from binwright.cli.options import Bootstrap, Group, settings_at
from binwright.cli.runner import run
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.runtime.settings import Settings
from binwright.views.page.server import PORT, Page


def command(
    *,
    group: Group = None,
    address: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0: every interface.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = PORT,
    bootstrap_servers: Bootstrap = None,
) -> None:
    """Serve the live page of a group to browsers, until Ctrl-C."""
    settings = group_settings(bootstrap_servers, group)
    console = Console(stderr=True, log_path=False, soft_wrap=True)
    page = Page(settings, on_problem=lambda why: console.log(f"nothing to show yet: {why}"))
    raise typer.Exit(
        run(
            lambda: page.serve(
                lambda: KafkaControlTopics(settings.kafka, read_only=True),
                address,
                port,
                lambda url: console.log(f"group {settings.group}: {url}"),
            )
        )
    )


def group_settings(bootstrap_servers: str | None, group: str | None) -> Settings:
    """Return the settings for a look at a group; another one than theirs has topics of its own.

    Raises:
        SettingsError: A value or key is wrong.
    """
    own = settings_at(bootstrap_servers)
    if group in {None, own.group}:
        return own
    named = settings_at(bootstrap_servers, group=group)
    return named.model_copy(update={"topics": (), "topic_patterns": ()})
