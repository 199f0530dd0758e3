"""`binwright page`: the live page in a browser, from the topics alone, wherever this runs.

Programs get the same at `/status` (JSON), and Prometheus at `/metrics`.
"""

from typing import Annotated

import typer
from rich.console import Console

from binwright.cli.options import Bootstrap, settings_at
from binwright.cli.runner import run
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.views.page.server import Page


def command(
    *,
    address: Annotated[str, typer.Option(help="To listen on; 0.0.0.0 is all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="To listen on.")] = 8088,
    bootstrap_servers: Bootstrap = None,
) -> None:
    """Serve the live page of the settings' group to browsers, until Ctrl-C."""
    settings = settings_at(bootstrap_servers)
    Console(stderr=True, log_path=False).log(f"http://{address}:{port}")
    page = Page(settings)
    raise typer.Exit(
        run(
            lambda: page.serve(
                lambda: KafkaControlTopics(settings.kafka, read_only=True), address, port
            )
        )
    )
