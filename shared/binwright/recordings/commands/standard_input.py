"""Standard input, copied to a file: what reads it may read it twice, and wait for it."""

import asyncio
import os
import threading
from pathlib import Path
from select import select

from binwright.protocol.errors import StreamError

STDIN = 0
PIECE_BYTES = 1 << 20
WAIT_S = 0.2  # longest wait for input: a cancellation waits for it


async def copy_standard_input(file: Path) -> None:
    """Copy standard input to a file, to its end; raise `StreamError` if that fails."""
    cancelled = threading.Event()
    try:
        await asyncio.to_thread(_copy, file, cancelled)
    finally:
        cancelled.set()


def _copy(file: Path, cancelled: threading.Event) -> None:
    try:
        with file.open("wb") as copied:
            while not cancelled.is_set():
                if not select([STDIN], [], [], WAIT_S)[0]:
                    continue
                if not (piece := os.read(STDIN, PIECE_BYTES)):
                    return
                copied.write(piece)
    except OSError as exc:
        raise StreamError(f"standard input: {exc}") from exc
