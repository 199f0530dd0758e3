"""Kafka's own `kafka-reassign-partitions`, from its jar: the judge of what `apply` did."""

import asyncio
from pathlib import Path

from tests.programs import run_program

from binwright.balancer import plan_file
from binwright.local.cache import cache_dir
from binwright.local.jars import ensure_jars, ivy_fetch, parse_lock
from binwright.local.java import find_java
from binwright.local.kafka import ensure_kafka
from binwright.local.server import no_progress

# The newest that is published; it talks to later brokers, too.
LOCK = (
    "org.apache.kafka:kafka-tools:4.3.1 698668"
    " 62f3c5dd7aa3442d4c5bc6a95f86e2502178ea09de8e27f74d9563bf955e253c"
)
MAIN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
LONGEST_S = 60.0


async def run_tool(servers: str, *arguments: str) -> str:
    """Run the tool; return what it printed. It must end well."""
    java = await find_java()
    fetch = ivy_fetch(java, "Kafka's tools'", no_progress)
    tools = await ensure_jars(parse_lock(LOCK), cache_dir() / "jars" / "kafka-tools", fetch)
    _, jars = await ensure_kafka(no_progress)
    command = (str(java.binary), "-cp", ":".join(map(str, (*tools, *jars))), MAIN)
    options = ("--bootstrap-server", servers, *arguments)
    done = await asyncio.to_thread(run_program, *command, *options, timeout_s=LONGEST_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


async def verify(servers: str, plan: Path) -> list[str]:
    """Return the partitions that the tool does not report as complete, in its words.

    It also names what is still throttled; it is told to leave throttles alone.
    """
    text = await run_tool(
        servers, "--verify", "--reassignment-json-file", str(plan), "--preserve-throttles"
    )
    lines = [line for line in text.splitlines() if line.startswith("Reassignment of partition ")]
    assert len(lines) == len(plan_file.read(plan)), text
    return [line for line in lines if not line.endswith(" is completed.")]
