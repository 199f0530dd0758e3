"""Progress of long reading."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

from rich.console import Console

T = TypeVar("T")

EVERY = 100


async def with_progress(items: Iterable[T], console: Console, doing: str) -> AsyncIterator[T]:
    """Yield the items and show how many there were; a signal may end it in between.

    Args:
        items: Of a long file.
        console: Shows the progress if it is a terminal.
        doing: What is done, and what the items are: `reading X: {} rows`.
    """
    with console.status(doing.format(0)) as status:
        for number, item in enumerate(items):
            if number % EVERY == 0:
                status.update(doing.format(f"{number:,}"))
                await asyncio.sleep(0)
            yield item
