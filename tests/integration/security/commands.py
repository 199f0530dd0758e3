"""The command line as processes, with any settings of Kafka."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

BINWRIGHT = (sys.executable, "-m", "binwright.cli")
DEADLINE_S = 60.0


def environment(section: Mapping[str, Any]) -> dict[str, str]:
    """Return this process's variables, and those that set a section `kafka`."""
    named = {f"BINWRIGHT_KAFKA__{name.upper()}": str(value) for name, value in section.items()}
    return {**os.environ, **named}


async def status(section: Mapping[str, Any], *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run `binwright status` to its end."""
    return await asyncio.to_thread(
        subprocess.run,
        (*BINWRIGHT, "status", *arguments),
        env=environment(section),
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_S,
    )
