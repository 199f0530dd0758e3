"""`python -m bench.demo`: the whole system on one machine, three times, as JSON.

Three demos, each a process as a person starts it: on an empty cache, on a filled one, and with more
load than two cores can land.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from bench import figures
from binwright.cli.console import to_stderr
from binwright.protocol.model import TopicPartition
from binwright.streams import streams

ROLES = {
    "broker": "broker.args",
    "spark": "spark.args",
    "monitor": "binwright.monitor",
    "controller": "binwright.controller",
    "consumer": "binwright.consumer",
    "demo": "binwright.cli",
}


def memory(mark: str, most: dict[str, float]) -> None:
    """Note the largest resident size of each role, MB."""
    for process in psutil.process_iter():
        try:
            command = " ".join(process.cmdline())
            if mark not in command and mark not in process.environ().get("TMPDIR", ""):
                continue
            size = process.memory_info().rss / 1e6
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
        role = next((name for name, word in ROLES.items() if word in command), None)
        if role is not None:
            most[role] = max(most.get(role, 0.0), size)


def demo(tmp: Path, cache: Path, *options: str) -> dict[str, Any]:
    """Run one demo; return its figures and the memory of its processes."""
    tmp.mkdir()
    command = (sys.executable, "-m", "binwright.cli", "demo", "--json", *options)
    environment = {**os.environ, "TMPDIR": str(tmp), "BINWRIGHT_CACHE": str(cache)}
    most: dict[str, float] = {}
    with (tmp / "out").open("w+") as out, (tmp / "err").open("w+") as err:
        running = subprocess.Popen(command, env=environment, stdout=out, stderr=err)
        deadline = time.monotonic() + 1200
        while running.poll() is None and time.monotonic() < deadline:
            memory(str(tmp), most)
            time.sleep(0.5)
        if running.wait(60):
            err.seek(0)
            sys.stderr.write(err.read()[-4000:])
            raise SystemExit(f"the demo failed with {running.returncode}")
        out.seek(0)
        facts: dict[str, Any] = json.load(out)
    seconds = facts["load_s"] + facts["landed_after_load_s"]
    total = facts["produced_bytes"] / seconds / 1e6
    facts["landed_mb_per_s"] = total
    facts["landed_mb_per_s_per_consumer"] = total / max(facts["consumers"]["mean"], 1e-9)
    facts["memory_mb"] = {role: round(size) for role, size in sorted(most.items())}
    return facts


@contextmanager
def flood(tmp: Path, partitions: int) -> Iterator[Path]:
    """Give a stream in which every partition fills a whole consumer."""
    row = {TopicPartition("orders", n): streams.PerCent(100.0) for n in range(partitions)}
    path = tmp / "flood.json"
    streams.write(path, [row] * 10)
    yield path


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.demo", description=__doc__)
    parser.add_argument("--minutes", default="1.5", help="the length of each load")
    parser.add_argument("--partitions", type=int, default=8, help="of the flood")
    figures.add_option(parser)
    wanted = parser.parse_args()
    load = ("--minutes", wanted.minutes)
    with tempfile.TemporaryDirectory(prefix="binwright-bench-") as name:
        tmp = Path(name)
        cache = tmp / "cache"
        with to_stderr(), flood(tmp, wanted.partitions) as stream:
            many = ("--stream", str(stream), "--capacity", "2400000")
            found = {
                "cores": os.cpu_count(),
                "load_average_before": os.getloadavg()[0],
                "first_run": demo(tmp / "first", cache, *load),
                "second_run": demo(tmp / "second", cache, *load),
                "flood": demo(tmp / "flood", cache, *load, *many),
            }
    figures.progress("demo", found, wanted.figures)


if __name__ == "__main__":
    main()
