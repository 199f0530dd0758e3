"""`make bench NAME=monitor`: what a monitor costs, and what others cost for the same calls.

1,000 and 10,000 partitions on a real broker, 100,000 on three brokers made of frames; each a
process of its own, measured for some seconds after it has warmed up. Prints JSON.
"""

import argparse
import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from bench import figures
from binwright.cli.console import to_stderr
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.local.kafka import ensure_kafka, run_broker
from binwright.local.server import no_progress
from binwright.runtime.settings.kafka import KafkaSettings

HERE = Path(__file__).parent
WARM_PASSES = 5
READY_S = 180.0
STEP = 2_000  # partitions made at once


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """What is measured, and for how long."""

    sizes: Sequence[int] = (1_000, 10_000)  # partitions on a real broker
    frames: int = 100_000  # partitions on brokers made of frames
    seconds: float = 30.0
    interval: float = 5.0  # of a pass over the frames, s


def alone(pid: int, seconds: float) -> float:
    """Return the cores that a process takes while it is idle."""
    process = psutil.Process(pid)
    before, began = sum(process.cpu_times()[:2]), time.monotonic()
    time.sleep(seconds)
    took = time.monotonic() - began
    spent: float = sum(process.cpu_times()[:2]) - before
    return round(spent / took, 3)


def cost(process: psutil.Popen, log: Path, other: int, seconds: float) -> dict[str, float]:
    """Return cores, CPU a pass, and memory of a process, and the cores of another meanwhile."""
    deadline = time.monotonic() + READY_S
    while passes(log) < WARM_PASSES:
        if process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"no {WARM_PASSES} passes, but:\n{log.read_text()[-2000:]}")
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
        "BINWRIGHT_MONITOR__GROUPS": "false",
        "BINWRIGHT_MONITOR__INTERVAL_S": str(interval_s),
        "BINWRIGHT_MONITOR__WINDOW_S": str(window_s),
        "BINWRIGHT_LOG_LEVEL": "debug",
    }


async def made(servers: str, topic: str, partitions: int) -> None:
    async with KafkaControlTopics(
        KafkaSettings(bootstrap_servers=servers, request_timeout_s=300)
    ) as bus:
        for count in range(min(STEP, partitions), partitions + 1, STEP):
            await bus.ensure(topic, count, {})


def clients(classpath: str, servers: str, topic: str) -> dict[str, list[str] | str]:
    """Return who asks a broker the same; a sentence instead of a command: why one does not."""
    rivals = [servers, topic]
    java: list[str] | str = "left out: no JDK with a compiler on the PATH"
    if shutil.which("javac") is not None:
        java = ["java", "-cp", classpath, str(HERE / "AdminCalls.java"), *rivals]
    return {
        "binwright": [sys.executable, "-m", "binwright.monitor"],
        "kafka_python": [sys.executable, str(HERE / "kafka_python.py"), *rivals],
        "java_admin": java,
    }


async def on_a_real_broker(tmp: Path, wanted: BenchOptions) -> dict[str, Any]:
    """Measure each client at each size, one after the other, and the broker alone."""
    results: dict[str, Any] = {}
    _, jars = await ensure_kafka(no_progress)
    classpath = ":".join(map(str, jars))
    async with run_broker(tmp / "kafka", heap="1g") as broker:
        servers = broker.bootstrap_servers
        for size in wanted.sizes:
            topic = f"load-{size}"
            await made(servers, topic, size)
            sizes: dict[str, Any] = {}
            for name, command in clients(classpath, servers, topic).items():
                if isinstance(command, str):
                    sizes[name] = command
                    continue
                log = tmp / f"{name}-{size}.log"
                with running(command, monitor(servers, topic, 1, 30), log) as process:
                    work = asyncio.to_thread(cost, process, log, broker.pid or 0, wanted.seconds)
                    sizes[name] = await work
                sys.stderr.write(f"{size} {name}: {sizes[name]}\n")
            # Only now: after it has made so many partitions it is busy with them for a while.
            at_rest = await asyncio.to_thread(alone, broker.pid or 0, wanted.seconds / 2)
            results[str(size)] = {**sizes, "broker_alone_cores": at_rest}
    return results


def line_of(log: Path) -> str:
    """Return the content of a log once it is not empty."""
    deadline = time.monotonic() + READY_S
    while not (message := log.read_text().strip()):
        if time.monotonic() > deadline:
            raise SystemExit(f"nothing in {log} after {READY_S:g} s")
        time.sleep(0.1)
    return message


def on_frames(tmp: Path, partitions: int, seconds: float, interval_s: float) -> dict[str, Any]:
    """Measure against brokers made of frames, sizes in turns."""
    fake = [sys.executable, "-m", "bench.fake_cluster", str(partitions), "20"]
    log = tmp / "fake.log"
    with running(fake, {}, log) as cluster:
        servers = line_of(log)
        environment = monitor(servers, "load-.*", interval_s, 6 * interval_s)
        command = [sys.executable, "-m", "binwright.monitor"]
        result = tmp / "monitor-frames.log"
        with running(command, environment, result) as process:
            return {**cost(process, result, cluster.pid, seconds), "interval_s": interval_s}


def passes(log: Path) -> int:
    """Return how many passes a monitor's (or another's) log holds."""
    return log.read_text().count("measured")


def measure_all(wanted: BenchOptions) -> dict[str, Any]:
    """Measure what is wanted."""
    results: dict[str, Any] = {"load_average_before": os.getloadavg()[0]}
    with tempfile.TemporaryDirectory(prefix="binwright-bench-") as name:
        if wanted.sizes:
            results["real_broker"] = asyncio.run(on_a_real_broker(Path(name), wanted))
        if wanted.frames:
            frames = on_frames(Path(name), wanted.frames, wanted.seconds, wanted.interval)
            results["frames"] = {str(wanted.frames): frames}
    return results


def main() -> None:
    """Measure and print."""
    usual = BenchOptions()
    parser = argparse.ArgumentParser(prog="make bench NAME=monitor", description=__doc__)
    parser.add_argument(
        "--seconds", type=float, default=usual.seconds, help="that each is measured"
    )
    parser.add_argument("--sizes", type=int, nargs="*", default=usual.sizes)
    parser.add_argument(
        "--frames", type=int, default=usual.frames, help="partitions; 0: leave it out"
    )
    parser.add_argument(
        "--interval", type=float, default=usual.interval, help="of a pass over the frames, s"
    )
    figures.add_option(parser)
    given = vars(parser.parse_args())
    page = given.pop("figures")
    wanted = BenchOptions(**given)
    with to_stderr():  # what the embedded broker logs
        results = measure_all(wanted)
    figures.progress("monitor", results, page)


if __name__ == "__main__":
    main()
