"""`python -m tests.bench.monitor`: what a monitor costs, and what others cost for the same calls.

1,000 and 10,000 partitions on a real broker, 100,000 on three brokers made of frames; each a
process of its own, measured for some seconds after it has warmed up. Prints JSON.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from binwright.embedded.broker import ensure_kafka, run_broker
from binwright.embedded.server import silent
from binwright.shell.bus import KafkaBus
from binwright.shell.settings import KafkaSettings

HERE = Path(__file__).parent
WARM_PASSES = 5
READY_S = 180.0
STEP = 2_000  # partitions made at once


def cost(process: psutil.Popen, log: Path, other: int, seconds: float) -> dict[str, float]:
    """Return cores, CPU a pass, and memory of a process, and the cores of another meanwhile."""
    deadline = time.monotonic() + READY_S
    while passes(log) < WARM_PASSES and time.monotonic() < deadline:
        time.sleep(0.5)
    watched = [process, psutil.Process(other)]
    before, passed = [sum(each.cpu_times()[:2]) for each in watched], passes(log)
    began, most = time.monotonic(), 0.0
    while time.monotonic() - began < seconds:
        if process.poll() is not None:
            raise SystemExit(f"it ended with {process.returncode}:\n{log.read_text()[-2000:]}")
        most = max(most, process.memory_info().rss / 1e6)
        time.sleep(0.5)
    took, done = time.monotonic() - began, passes(log) - passed
    spent = [sum(each.cpu_times()[:2]) - old for each, old in zip(watched, before, strict=True)]
    return {
        "cores": round(spent[0] / took, 3),
        "passes_per_s": round(done / took, 2),
        "cpu_ms_per_pass": round(1000 * spent[0] / max(done, 1)),
        "rss_mb": round(most),
        "broker_cores": round(spent[1] / took, 3),
        "broker_cpu_ms_per_pass": round(1000 * spent[1] / max(done, 1)),
    }


@contextmanager
def running(
    command: list[str], environment: Mapping[str, str], log: Path
) -> Iterator[psutil.Popen]:
    with log.open("wb") as out:
        process = psutil.Popen(
            command, env={**os.environ, **environment}, stdout=out, stderr=subprocess.STDOUT
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)


def monitor(servers: str, pattern: str, interval_s: float, window_s: float) -> dict[str, str]:
    return {
        "BINWRIGHT_KAFKA__BOOTSTRAP_SERVERS": servers,
        "BINWRIGHT_MONITOR__PATTERN": pattern,
        "BINWRIGHT_MONITOR__INTERVAL_S": str(interval_s),
        "BINWRIGHT_MONITOR__WINDOW_S": str(window_s),
        "BINWRIGHT_LOG_LEVEL": "debug",
    }


async def made(servers: str, topic: str, partitions: int) -> None:
    async with KafkaBus(KafkaSettings(bootstrap_servers=servers, request_timeout_s=300)) as bus:
        for count in range(min(STEP, partitions), partitions + 1, STEP):
            await bus.ensure(topic, count, {})


async def on_a_real_broker(tmp: Path, sizes: list[int], seconds: float) -> dict[str, Any]:
    found: dict[str, Any] = {}
    _, jars = await ensure_kafka(silent)
    classpath = ":".join(map(str, jars))
    async with run_broker(tmp / "kafka", heap="1g") as broker:
        servers = broker.bootstrap_servers
        for size in sizes:
            topic = f"load-{size}"
            await made(servers, topic, size)
            others = {
                "binwright": [sys.executable, "-m", "binwright.monitor"],
                "kafka_python": [sys.executable, str(HERE / "kafka_python.py"), servers, topic],
                "java_admin": ["java", "-cp", classpath, str(HERE / "Admin.java"), servers, topic],
            }
            for name, command in others.items():
                log = tmp / f"{name}-{size}.log"
                with running(command, monitor(servers, topic, 1, 30), log) as process:
                    work = asyncio.to_thread(cost, process, log, broker.pid or 0, seconds)
                    found.setdefault(str(size), {})[name] = await work
                sys.stderr.write(f"{size} {name}: {found[str(size)][name]}\n")
    return found


def on_frames(tmp: Path, partitions: int, seconds: float, interval_s: float) -> dict[str, Any]:
    """Measure against brokers made of frames, sizes in turns."""
    fake = [sys.executable, "-m", "tests.bench.fake_cluster", str(partitions), "20"]
    log = tmp / "fake.log"
    with running(fake, {}, log) as cluster:
        while not (servers := log.read_text().strip()):
            time.sleep(0.1)
        environment = monitor(servers, "load-.*", interval_s, 6 * interval_s)
        command = [sys.executable, "-m", "binwright.monitor"]
        told = tmp / "monitor-frames.log"
        with running(command, environment, told) as process:
            return {**cost(process, told, cluster.pid, seconds), "interval_s": interval_s}


def passes(log: Path) -> int:
    """Return how many passes a monitor's (or another's) log tells of."""
    return log.read_text().count("measured")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.monitor", description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0, help="that each is measured")
    parser.add_argument("--sizes", type=int, nargs="*", default=[1_000, 10_000])
    parser.add_argument("--frames", type=int, default=100_000, help="partitions; 0: leave it out")
    parser.add_argument("--interval", type=float, default=5.0, help="of a pass over the frames, s")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="binwright-bench-") as name:
        tmp = Path(name)
        found: dict[str, Any] = {"cores": os.cpu_count(), "load_average": os.getloadavg()[0]}
        if wanted.sizes:
            found["real_broker"] = asyncio.run(on_a_real_broker(tmp, wanted.sizes, wanted.seconds))
        if wanted.frames:
            frames = on_frames(tmp, wanted.frames, wanted.seconds, wanted.interval)
            found["frames"] = {str(wanted.frames): frames}
    sys.stdout.write(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
