"""`python -m tools.reference`: the pages of docs/reference, from the code that they describe."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from binwright.protocol.errors import UserError

PAGES = ("settings", "cli", "messages", "metrics", "errors", "log-events", "acls", "types")
"""A page each, made by `page()` of the module of this name."""


def page(name: str) -> str:
    """Return one page, in Markdown.

    Raises:
        UserError: There is no such page.
    """
    if name not in PAGES:
        raise UserError(f"no page {name!r}: there are {', '.join(PAGES)}")
    module = import_module(f"tools.reference.{name.replace('-', '_')}")
    text: str = module.page()
    return text


def reference(
    name: Annotated[str, typer.Argument(help=f"One of {', '.join(PAGES)}.")] = "",
    *,
    output: Annotated[
        Path | None, typer.Option(help="Write all pages to this directory instead.")
    ] = None,
) -> None:
    """Print a reference page, or write all of them as Markdown files."""
    if output is None:
        sys.stdout.write(page(name))
        return
    if name:
        raise UserError("--output writes all pages: give no name with it")
    output.mkdir(parents=True, exist_ok=True)
    for each in PAGES:
        (output / f"{each}.md").write_text(page(each), encoding="utf-8")


if __name__ == "__main__":
    typer.run(reference)
