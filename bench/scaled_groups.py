"""`make bench NAME=scaled-groups`: passes of a scaler over many groups, on a real broker.

500 groups read a topic of ten partitions each, to which records are written meanwhile. The scaler
is a process of its own, with the product's look-ups and decisions; its workloads are numbers in
memory, or with `--api-server` ScaledGroup objects and Deployments of a real API server. It is
measured twice: with a monitor that follows the topics, and without one. Then a group at zero gets
its first record, again and again: how long until it is ordered to wake. Prints JSON.
"""

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import psutil
from aiokafka import AIOKafkaProducer
from aiokafka.protocol.commit import OffsetCommitRequest

from bench import figures
from bench.scaled_objects import ApiServer, run_api_server
from binwright.kafka.client import ClusterClient
from binwright.kafka.control_records import METRICS_CONFIG
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.kafka.group_requests import find_coordinator
from binwright.local.child import Child, Command
from binwright.local.kafka import run_broker
from binwright.runtime.environment import clean_environment
from binwright.runtime.logs import configure_logging
from binwright.runtime.run import background_tasks, must_not_end
from binwright.runtime.serve import serve
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.scaler.decide.config import ScaledGroupSettings
from binwright.scaler.decide.sizing import WorkloadStatus
from binwright.scaler.ends import MeasuredEnds, TopicEnds
from binwright.scaler.groups import ConsumerGroups
from binwright.scaler.keda.triggers import Recommendation
from binwright.scaler.passes import ScaledTarget, Scaler, Targets
from binwright.scaler.settings import ScalerProgramSettings

PARTITIONS, AT_ONCE, CAPACITY = 10, 50, 100.0
METRICS = "bench.metrics"
SLEEPERS = tuple(f"sleeper-{number}" for number in range(5))
WARM_PASSES, READY_S = 2, 120.0
BROKER = {
    # Thousands of partitions whose first index entry is due at the same moment: 10 ms each here.
    "log.index.interval.bytes": str(1 << 30),
    "log.index.size.max.bytes": str(64 << 10),
}
ROOT = Path(__file__).parents[1]


class NumberWorkload(Recommendation):
    """Replicas that are a number, all of them ready."""

    def status(self) -> WorkloadStatus:
        return WorkloadStatus(replicas=self.replicas, ready=self.replicas)


def topic_of(number: int) -> str:
    return f"topic-{number:04}"


def connection(servers: str) -> KafkaSettings:
    return KafkaSettings(bootstrap_servers=servers, request_timeout_s=60.0)


def configs(groups: int) -> Iterator[ScaledGroupSettings]:
    """Yield what is scaled: the sleepers are at zero."""
    for number in range(groups):
        yield ScaledGroupSettings(
            group=f"group-{number:04}",
            min_replicas=1,
            max_replicas=PARTITIONS,
            records_per_s=CAPACITY,
        )
    for name in SLEEPERS:
        yield ScaledGroupSettings(
            group=name, topics=(name,), min_replicas=0, max_replicas=5, records_per_s=CAPACITY
        )


@contextlib.asynccontextmanager
async def open_targets(
    settings: ScalerProgramSettings, groups: int
) -> AsyncIterator[Callable[[], Targets]]:
    """Give what returns the targets: objects if the settings have a kubeconfig."""
    if settings.kubernetes.kubeconfig is None:
        targets = {
            config.group: ScaledTarget(config.group, config, NumberWorkload(config.bounds.least))
            for config in configs(groups)
        }
        yield lambda: targets
        return
    # Importing its client takes a second and 45 MB, which the other figures are without.
    from binwright.scaler.objects.objects import scaled_objects  # noqa: PLC0415

    async with (
        scaled_objects(settings, lambda: None) as objects,
        background_tasks(must_not_end(objects.follow())),
    ):
        yield lambda: objects.targets


async def scale(
    settings: ScalerProgramSettings, servers: str, groups: int, period_s: float
) -> None:
    """Scale all groups, for ever; write each pass and each wake as a line of JSON."""

    def write(**facts: Any) -> None:
        sys.stdout.write(json.dumps(facts) + "\n")
        sys.stdout.flush()

    seen, watched = 0, set[str]()

    def watch(target: ScaledTarget) -> None:
        """Write when it wakes."""
        before = target.on_change

        def changed(target: ScaledTarget, replicas: int | None) -> None:
            before(target, replicas)
            if replicas:
                write(woken=time.time(), group=target.config.group)

        target.on_change = changed
        watched.add(target.key)

    def beat() -> None:
        nonlocal seen
        if scaler.passes > seen:
            seen, every = scaler.passes, targets().values()
            for target in every:
                if target.config.group in SLEEPERS and target.key not in watched:
                    watch(target)
            faults = sum(bool(target.fault) for target in every)
            sized = sum(target.verdict is not None for target in every)
            unsized = groups + len(SLEEPERS) - sized
            lag = sum(t.verdict.work.lag for t in every if t.verdict)
            seen_of = {"pass_s": scaler.pass_s, "faults": faults, "unsized": unsized, "lag": lag}
            write(**seen_of, looked_up=ends.looked_up)

    async with (
        open_targets(settings, groups) as targets,
        KafkaControlTopics(connection(servers), read_only=True) as bus,
        ClusterClient(connection(servers)) as cluster,
    ):
        measured = MeasuredEnds(bus, METRICS)
        ends = TopicEnds(cluster, measured)
        scaler = Scaler(
            targets, ConsumerGroups(cluster), ends, period_s=period_s, zero_poll_s=2.0, beat=beat
        )
        async with background_tasks(must_not_end(measured.run())):
            await must_not_end(scaler.run())


async def prepare(servers: str, groups: int) -> None:
    """Make the topics, and commit an offset of each group in each partition."""
    async with (
        KafkaControlTopics(connection(servers)) as bus,
        ClusterClient(connection(servers)) as cluster,
    ):
        await bus.ensure(METRICS, 1, METRICS_CONFIG)
        for name in SLEEPERS:
            await bus.ensure(name, PARTITIONS, {})
        for first in range(0, groups, AT_ONCE):
            numbers = range(first, min(first + AT_ONCE, groups))
            await asyncio.gather(*(bus.ensure(topic_of(n), PARTITIONS, {}) for n in numbers))
        for number in range(groups):
            await commit(cluster, f"group-{number:04}", topic_of(number))


async def commit(cluster: ClusterClient, group: str, topic: str) -> None:
    """Commit offset 0 of each partition, as a member that is alone would."""
    rows = [(partition, 0, "") for partition in range(PARTITIONS)]
    request = OffsetCommitRequest(group, -1, "", -1, [(topic, rows)])
    deadline = time.monotonic() + READY_S
    while True:
        found = await find_coordinator(group, cluster.ask_any)
        if not found.error_code:
            response = await cluster.send_request(found.broker, request)
            if not any(code for _, rows in response.topics for _, code in rows):
                return
        if time.monotonic() > deadline:
            raise SystemExit(f"no offset of {group} can be committed")
        await asyncio.sleep(0.2)


async def write_records(producer: AIOKafkaProducer, groups: int, period_s: float) -> None:
    """Write a record to each partition in each period, for ever."""
    while True:
        for number in range(groups):
            for partition in range(PARTITIONS):
                await producer.send(topic_of(number), b"0123456789", partition=partition)
            await asyncio.sleep(period_s / groups)


def lines(log: Path, key: str) -> list[dict[str, Any]]:
    """Return the lines of JSON that have this key."""
    matching = []
    for line in log.read_text().splitlines():
        with contextlib.suppress(ValueError):
            facts = json.loads(line)
            if key in facts:
                matching.append(facts)
    return matching


async def until_lines(log: Path, key: str, count: int, child: Child) -> list[dict[str, Any]]:
    async with asyncio.timeout(READY_S):
        while len(matching := lines(log, key)) < count:
            if child.returncode is not None:
                raise SystemExit(f"the scaler ended: {child.tail()}")
            await asyncio.sleep(0.05)
    return matching


@contextlib.asynccontextmanager
async def running(
    title: str, arguments: Sequence[str], place: Path, variables: Mapping[str, str]
) -> AsyncIterator[Child]:
    """Run a process until the end of the body."""
    code = os.environ.get("PYTHONPATH", "")
    child = Child(
        Command(
            title=title,
            argv=(sys.executable, *arguments),
            directory=place,
            log=place / f"{title}.log",
            environment=clean_environment({"PYTHONPATH": f"{ROOT}:{code}", **variables}),
        )
    )
    try:
        yield child
    finally:
        await child.kill()


async def until_sized(log: Path, child: Child) -> int:
    """Wait until a pass has sized every group; return how many passes there were."""
    count = WARM_PASSES
    async with asyncio.timeout(READY_S):
        while (found := await until_lines(log, "pass_s", count, child))[-1]["unsized"]:
            count = len(found) + 1
    return len(found)


async def measured(  # noqa: PLR0917 - what a run is made of
    servers: str,
    groups: int,
    period_s: float,
    seconds: float,
    place: Path,
    api_server: ApiServer | None,
) -> dict[str, Any]:
    """Run a scaler, and return what its passes cost and how soon groups wake."""
    arguments = ("-m", __spec__.name, "--scale", servers, str(groups), str(period_s))
    variables = api_server.variables() if api_server else {}
    async with running("scaler", arguments, place, variables) as child:
        log = place / "scaler.log"
        warm = await until_sized(log, child)
        process = psutil.Process(child.pid)
        before, at = sum(process.cpu_times()[:2]), time.monotonic()
        served = await writes_and_cpu(api_server)
        await asyncio.sleep(seconds)
        spent, passed = sum(process.cpu_times()[:2]) - before, time.monotonic() - at
        since = await writes_and_cpu(api_server)
        passes = lines(log, "pass_s")[warm:]
        memory = process.memory_info().rss
        wakes = await woken(servers, log, child)
    return {
        "groups": groups,
        "partitions": groups * PARTITIONS,
        "topics looked up": passes[-1]["looked_up"],
        "passes": len(passes),
        "pass s, median": statistics.median(one["pass_s"] for one in passes),
        "pass s, longest": max(one["pass_s"] for one in passes),
        "core": spent / passed,
        "CPU ms a pass": 1000 * spent / len(passes),
        "MB": memory / 1e6,
        "faults": passes[-1]["faults"],
        "not sized": passes[-1]["unsized"],
        "wake s, median": statistics.median(wakes),
        "wake s, longest": max(wakes),
        **{name: (since[name] - served[name]) / passed for name in since},
    }


async def writes_and_cpu(api_server: ApiServer | None) -> dict[str, float]:
    """Return what an API server has done up to now."""
    if api_server is None:
        return {}
    cpu_s = api_server.cpu_s()
    return {
        "status writes a second": await api_server.status_writes(),
        "API server, cores": cpu_s["kube-apiserver"],
        "etcd, cores": cpu_s["etcd"],
    }


async def woken(servers: str, log: Path, child: Child) -> list[float]:
    """Write a first record for each group at zero; return the seconds until it was to wake."""
    waits = []
    producer = AIOKafkaProducer(bootstrap_servers=servers)
    await producer.start()
    try:
        for number, name in enumerate(SLEEPERS):
            await asyncio.sleep(0.7 * number)  # at another time of its period
            began = time.time()
            await producer.send_and_wait(name, b"first")
            found = await until_lines(log, "woken", number + 1, child)
            assert found[-1]["group"] == name, found
            waits.append(found[-1]["woken"] - began)
    finally:
        await producer.stop()
    return waits


async def bench(
    groups: int, period_s: float, seconds: float, place: Path, *, has_objects: bool
) -> list[dict[str, Any]]:
    """Return the figures with and without a monitor."""
    rows = []
    async with run_broker(place / "broker", settings=BROKER, heap="1g") as broker:
        servers = broker.bootstrap_servers
        await prepare(servers, groups)
        producer = AIOKafkaProducer(bootstrap_servers=servers)
        await producer.start()
        try:
            async with background_tasks(must_not_end(write_records(producer, groups, period_s))):
                for title in ("looked up", "monitor"):
                    directory = place / title.replace(" ", "-")
                    directory.mkdir()
                    async with contextlib.AsyncExitStack() as stack:
                        api_server = None
                        if has_objects:
                            (home := directory / "plane").mkdir()
                            plane = run_api_server(home, configs(groups))
                            api_server = await stack.enter_async_context(plane)
                        if title == "monitor":
                            command, variables = ("-m", "binwright.monitor"), measuring(servers)
                            monitor = running("monitor", command, directory, variables)
                            await stack.enter_async_context(monitor)
                        figures_of = await measured(
                            servers, groups, period_s, seconds, directory, api_server
                        )
                    rows.append({"ends": title, **figures_of})
                    sys.stderr.write(f"{rows[-1]}\n")
        finally:
            await producer.stop()
    return rows


def measuring(servers: str) -> dict[str, str]:
    return {
        "BINWRIGHT_KAFKA__BOOTSTRAP_SERVERS": servers,
        "BINWRIGHT_MONITOR__TOPIC": METRICS,
        "BINWRIGHT_MONITOR__PATTERN": "topic-.*|sleeper-.*",
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Print JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=500)
    parser.add_argument("--period", type=float, default=5.0, help="of a pass, s")
    parser.add_argument("--seconds", type=float, default=40.0, help="that are measured")
    parser.add_argument(
        "--api-server", action="store_true", help="groups are ScaledGroup objects of a real one"
    )
    parser.add_argument("--scale", nargs=3, help=argparse.SUPPRESS)
    figures.add_option(parser)
    chosen = parser.parse_args(arguments)
    if chosen.scale:
        servers, groups, period_s = chosen.scale
        scaling = partial(scale, servers=servers, groups=int(groups), period_s=float(period_s))
        return serve(scaling, ScalerProgramSettings)
    configure_logging("warning", "console")
    with tempfile.TemporaryDirectory(prefix="binwright-bench-") as directory:
        work = bench(
            *(chosen.groups, chosen.period, chosen.seconds, Path(directory)),
            has_objects=chosen.api_server,
        )
        rows = asyncio.run(work)
    figures.progress("scaled-groups", rows, chosen.figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
