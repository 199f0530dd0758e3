"""The command line, as a process of its own."""

import asyncio
import sys
from collections.abc import Mapping

DEADLINE_S = 300.0


async def binwright(
    *arguments: str, environment: Mapping[str, str] | None = None
) -> tuple[int, str, str]:
    """Run a command to its end; return its exit code, output and errors."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "binwright.cli", *arguments),
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(DEADLINE_S):
        out, errors = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), errors.decode()
