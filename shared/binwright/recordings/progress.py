"""Progress of long reading."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

from rich.console import Console
from rich.markup import escape

T = TypeVar("T")

EVERY = 100


async def with_progress(
    items: Iterable[T], console: Console, doing: str, unit: str
) -> AsyncIterator[T]:
    """Yield the items and show how many there were; a signal may end it in between.

    Args:
        items: Of a long file.
        console: Shows the progress if it is a terminal.
        doing: What is done, and to which file.
        unit: What the items are.
    """
    with console.status(escape(doing)) as status:
        for number, item in enumerate(items):
            if number % EVERY == 0:
                status.update(f"{escape(doing)}: {number:,} {unit}")
                await asyncio.sleep(0)
            yield item
