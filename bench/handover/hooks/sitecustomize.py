"""Imported by Python itself in the consumers that the bench starts: notes what a fetch returned.

Also how long each write took, to show under which writes partitions changed hands.
"""

import os
import sys
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import Any

from bench.handover.marks import Marks
from tests.chaos.patch_on_import import PatchOnImport


def note(owner: type, name: str, noted: Callable[[Any, float], None]) -> None:
    """Call `noted` with what each call of a method returned, and how many seconds it took."""
    original = getattr(owner, name)

    @wraps(original)
    async def noting(*args: Any, **more: Any) -> Any:
        began = time.monotonic()
        given = await original(*args, **more)
        noted(given, time.monotonic() - began)
        return given

    setattr(owner, name, noting)


def note_all(directory: Path) -> None:
    """Note fetches, as they are handed to the consumer's loop, and commits."""
    marks = Marks(directory, os.getpid())
    writes = (directory / f"{os.getpid()}.writes").open("a", buffering=1)

    def fetched(batches: Any, _: float) -> None:
        if batches:
            ends = {p.partition: (int(rs.offsets[0]), rs.next - 1) for p, rs in batches.items()}
            marks.add(ends)

    def written(_: Any, took_s: float) -> None:
        writes.write(f"{took_s}\n")

    changes: dict[str, Callable[[ModuleType], None]] = {
        "binwright.consumer.read.data_reader": lambda module: note(
            module.KafkaDataReader, "fetch", fetched
        ),
        "binwright.consumer.land.lake.spark_lake": lambda module: note(
            module.SparkLake, "append", written
        ),
    }
    sys.meta_path.insert(0, PatchOnImport(changes))  # it imports Spark's client late, if at all


if "binwright.consumer" in sys.orig_argv:
    note_all(Path(os.environ["HANDOVER_MARKS"]))
