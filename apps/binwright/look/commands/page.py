"""`binwright page`: the live page in a browser, from the topics alone, wherever this runs.

Programs get the same at `/status` (JSON), and Prometheus at `/metrics`.
"""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from binwright.cli.options import Bootstrap, Group, settings_at
from binwright.cli.runner import run
from binwright.cli.terminal import Console
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.look.page.order_desk import OrderDesk
from binwright.look.page.server import PORT, Page
from binwright.runtime.http import Listener
from binwright.runtime.settings.group import Settings


def command(
    *,
    group: Group = None,
    address: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0: every interface.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = PORT,
    host: Annotated[
        list[str] | None,
        typer.Option(
            help="A name by which browsers address it, besides localhost and IP addresses; may be "
            "repeated. Without one: on a loopback address no others, elsewhere all."
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            help="File with the token that requests need: as a bearer token, or in a browser as "
            "the password of a user of any name."
        ),
    ] = None,
    certificate_file: Annotated[
        Path | None, typer.Option(help="Certificate for HTTPS, PEM.")
    ] = None,
    key_file: Annotated[Path | None, typer.Option(help="The key of that certificate, PEM.")] = None,
    orders: Annotated[
        bool,
        typer.Option(
            "--orders",
            help="Take orders, approvals and pauses from browsers that have the token: needs "
            "--token-file, and the rights of who steers.",
        ),
    ] = False,
    bootstrap_servers: Bootstrap = None,
) -> None:
    """Serve the live page of a group to browsers, until Ctrl-C."""
    if (certificate_file is None) != (key_file is None):
        raise typer.BadParameter("--certificate-file and --key-file need each other")
    if orders and token_file is None:
        raise typer.BadParameter("--orders needs --token-file: whoever has the token may steer")
    settings = group_settings(bootstrap_servers, group)
    listener = Listener(
        address,
        port,
        "--port",
        hosts=tuple(host or ()),
        token_file=token_file,
        certificate_file=certificate_file,
        key_file=key_file,
    )
    console = Console(stderr=True, log_path=False, soft_wrap=True)
    connect = partial(KafkaControlTopics, settings.kafka)
    page = Page(
        settings,
        on_problem=lambda why: console.log(f"nothing to show yet: {why}"),
        desk=OrderDesk(settings, connect, lambda text: console.log(Text(text))) if orders else None,
    )
    raise typer.Exit(
        run(
            lambda: page.serve(
                lambda: KafkaControlTopics(settings.kafka, read_only=True),
                listener,
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
