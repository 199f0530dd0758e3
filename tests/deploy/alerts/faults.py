"""Faults on purpose: each is made when its block is entered, and mended when the block is left."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial

import psutil
from tests.consumer.decode.avro import record, written
from tests.deploy.alerts.live_system import (
    BILLS,
    CLICKS,
    DEAD_S,
    EVENTS,
    FIRST,
    GROUP,
    ITEMS,
    LOGS,
    SLOW,
    VALID_S,
    LiveSystem,
    seen,
)
from tests.deploy.alerts.prometheus_server import Labels
from tests.deploy.alerts.runbook import command_of
from tests.integration.landing import has_landed, produce, until
from tests.integration.security.secured_broker import USER

from binwright.lake.session import ReconnectingSession
from binwright.local.server import HOST
from binwright.runtime.settings.group import Settings

ALTER_S = 60.0
DAY_S = 86_400.0
LATE_S = 16.0  # the rules' bucket is that of 15 s
LATE_COMMITS = 3  # fewer do not count
REASON = "a fault on purpose"
PAUSE_S = 11.0  # the rule's bucket is that of 10 s
FETCHED_S = 1.0  # longer than a broker keeps a fetch waiting
SECOND = record(("id", "long"), ("item", ["null", "string"]))

Block = AbstractAsyncContextManager[None]


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault, and the alerts that are to fire: with these labels, and until when.

    Attributes:
        alerts: Each with what the runbook's command then prints of the cause.
        make: Makes the fault.
        labels: Among those of the alerts.
        silent_s: After the end of the fault: more where a rule looks back.
        stops_consumers: For a while, so that nothing else is to begin meanwhile.
        settings: Of the service that the alerts are about.
    """

    alerts: Mapping[str, str]
    make: Callable[[LiveSystem], Block]
    labels: Callable[[LiveSystem], Labels]
    silent_s: float = 120.0
    stops_consumers: bool = False
    settings: Callable[[LiveSystem], Settings] = lambda system: system.settings


def of_table(topic: str) -> Callable[[LiveSystem], Labels]:
    """Return the labels of a table."""
    return lambda _: {"group": GROUP, "topic": topic, "table": topic}


def of_group(_: LiveSystem) -> Labels:
    """Return the labels of the group."""
    return {"group": GROUP}


@asynccontextmanager
async def bad_records(system: LiveSystem) -> AsyncIterator[None]:
    """Write what is no JSON."""
    await produce(system.broker, ITEMS, [b"no JSON", b"nor this"])
    yield


@asynccontextmanager
async def slow_move(system: LiveSystem) -> AsyncIterator[None]:
    """Have a partition wait for its new owner, which stands still for longer than is usual."""
    moving = f"{CLICKS}-0"
    consumers = (await system.status())["consumers"]
    new = next(each["slot"] for each in consumers if moving not in each["partitions"])

    async def stopped() -> bool:
        moves = (await system.status())["moves"]
        return any(each["partition"] == moving and each["phase"] == "starting" for each in moves)

    owner = psutil.Process(system.stack.consumer_pids()[new])
    owner.suspend()
    try:
        await system.run("group", "pin", moving, str(new), "--reason", REASON)
        await seen(stopped, f"nobody reads {moving}", DEAD_S)
        await asyncio.sleep(PAUSE_S)
    finally:
        owner.resume()
    yield
    await system.run("group", "unpin", moving)


@asynccontextmanager
async def lost_offsets(system: LiveSystem) -> AsyncIterator[None]:
    """Have retention delete records while consumers stand still for a moment."""
    system.send_to_consumers(signal.SIGSTOP)
    try:
        await asyncio.sleep(FETCHED_S)
        await produce(system.broker, LOGS, [b"lost"] * 3)
        await system.delete_records(LOGS, 3)
    finally:
        system.send_to_consumers(signal.SIGCONT)
    yield


@asynccontextmanager
async def refused_table(system: LiveSystem) -> AsyncIterator[None]:
    """Give a table a constraint that its next row breaks."""
    name = f"ALTER TABLE delta.`{system.lake}/{BILLS}`"
    session = ReconnectingSession(lambda: system.spark.url)

    async def alter(change: str) -> None:
        await session.run(lambda spark: spark.sql(f"{name} {change}").collect(), ALTER_S)

    try:
        await alter("ADD CONSTRAINT small CHECK (id < 100)")
        await produce(system.broker, BILLS, [b'{"id": 1000}'])
        try:
            yield
        finally:
            await alter("DROP CONSTRAINT small")
        await until(partial(has_landed, system.lake, BILLS, 2))
    finally:
        await session.close()


@asynccontextmanager
async def registry_away(system: LiveSystem) -> AsyncIterator[None]:
    """End the registry, and write a record of a schema that no consumer has asked it for."""
    subject = f"{EVENTS}-value"
    number = system.registry.register(subject, SECOND)
    await system.registry.kill()
    await produce(system.broker, EVENTS, [written(SECOND, {"id": 2, "item": None}, number)])
    try:
        yield
    finally:
        # It has forgotten its schemas: asked before it has them again, it would make a bad record.
        system.send_to_consumers(signal.SIGSTOP)
        try:
            await system.registry.start()
            numbers = [system.registry.register(subject, each) for each in (FIRST, SECOND)]
        finally:
            system.send_to_consumers(signal.SIGCONT)
    assert numbers[1] == number
    await until(partial(has_landed, system.lake, EVENTS, 2))


@asynccontextmanager
async def certificate_expires(system: LiveSystem) -> AsyncIterator[None]:
    """Give a service a certificate for a day, and renew it in place."""
    authority = system.secured.authority
    authority.client(USER, valid_s=DAY_S)
    yield
    authority.client(USER, valid_s=VALID_S)


@asynccontextmanager
async def late_commits(system: LiveSystem) -> AsyncIterator[None]:
    """Have a table land rows too late, and the last of them not yet."""

    async def is_paused() -> bool:
        tables = (await system.status())["tables"]
        return any(table["name"] == SLOW and table["state"] == "paused" for table in tables)

    async def hold(number: int) -> None:
        await system.run("table", "pause", SLOW, "--reason", REASON)
        await seen(is_paused, f"{SLOW} is paused", ALTER_S)  # else the row may land at once
        await produce(system.broker, SLOW, [b"late %d" % number])

    async def land(number: int) -> None:
        await system.run("table", "resume", SLOW)
        await until(partial(has_landed, system.lake, SLOW, number))

    for number in range(1, LATE_COMMITS + 1):
        await hold(number)
        await asyncio.sleep(LATE_S)
        await land(number)
    await hold(LATE_COMMITS + 1)
    yield
    await land(LATE_COMMITS + 1)


@asynccontextmanager
async def staging_away(system: LiveSystem) -> AsyncIterator[None]:
    """Put a file in the place of the staging directory, and have consumers start anew."""
    place = system.directory / "staging"
    away = place.with_name("staging.away")
    system.send_to_consumers(signal.SIGKILL)  # first: what lives would make the directory again
    place.rename(away)
    place.write_text("no directory")
    try:
        yield
    finally:
        place.unlink()
        away.rename(place)


@asynccontextmanager
async def dead_consumers(system: LiveSystem) -> AsyncIterator[None]:
    """Kill the consumers while their controller stands still."""
    pid = system.stack.controller.pid
    assert pid is not None
    psutil.Process(pid).send_signal(signal.SIGSTOP)
    system.send_to_consumers(signal.SIGKILL)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@asynccontextmanager
async def spark_away(system: LiveSystem) -> AsyncIterator[None]:
    """End Spark, and start it again."""
    await system.spark.stop()
    try:
        yield
    finally:
        await system.spark.start()


@asynccontextmanager
async def broker_away(system: LiveSystem) -> AsyncIterator[None]:
    """End the broker, and start it again."""
    await system.secured.broker.stop()
    try:
        yield
    finally:
        await system.secured.broker.start()


WINDOW_S = 600.0  # that three rules look back
TOGETHER = (
    Fault(
        {"BinwrightMovesPauseLong": REASON},
        slow_move,
        of_group,
        WINDOW_S + 60,
        stops_consumers=True,
    ),
    Fault({"BinwrightBadRecords": "malformed"}, bad_records, of_table(ITEMS), WINDOW_S + 60),
    Fault(
        {"BinwrightOffsetsLost": f"{LOGS}-0: 3 without a row"},
        lost_offsets,
        of_group,
        WINDOW_S + 60,
    ),
    Fault({"BinwrightTableRefused": "CHECK constraint small"}, refused_table, of_table(BILLS)),
    Fault({"BinwrightTopicStuck": "does not give"}, registry_away, of_group),
    Fault(
        {"BinwrightCertificateExpires": "valid for 24 hours only"},
        certificate_expires,
        lambda system: {"instance": _instance(system.by_certificate)},
        settings=lambda system: system.by_certificate,
    ),
    Fault(
        {"BinwrightFreshnessBurnsFast": "a fault on purpose"}, late_commits, of_table(SLOW), 360.0
    ),
)
"""Faults that do not touch each other, once the consumers run."""
ALONE = (
    Fault(
        {"BinwrightTableNotLanding": "Spark", "BinwrightRowsLate": "Spark"},
        spark_away,
        of_table(CLICKS),
    ),
    Fault({"BinwrightConsumerNotReady": "fault staging"}, staging_away, of_group),
    Fault(
        {"BinwrightPartitionsUnread": "no consumer reports", "BinwrightNoConsumers": "silent"},
        dead_consumers,
        of_group,
    ),
    Fault(
        {"BinwrightNotReady": "Connection refused"},
        broker_away,
        lambda system: {"instance": system.monitor},
        180.0,
    ),
)
"""Faults of what all share, one after the other."""


def _instance(settings: Settings) -> str:
    return f"{HOST}:{settings.health.port}"


async def shown(
    system: LiveSystem, fault: Fault, fires_s: float, mended: asyncio.Event
) -> dict[str, float]:
    """Make a fault and mend it; return how many seconds after it was made each alert fired.

    Args:
        system: Where it is made.
        fault: The fault.
        fires_s: Within which its alerts are to fire.
        mended: Is set when it is mended, though its alerts may fire for a while.

    Raises:
        AssertionError: An alert did not fire in time, the runbook's command does not show its
            cause, or it did not fall silent.
    """
    labels = fault.labels(system)
    loop = asyncio.get_running_loop()
    took: dict[str, float] = {}
    async with fault.make(system):
        began = loop.time()
        for alert in fault.alerts:
            left_s = fires_s - (loop.time() - began)
            await seen(partial(system.fires, alert, labels), f"{alert} fires", left_s)
            took[alert] = loop.time() - began
        for alert, cause in fault.alerts.items():
            command = command_of(alert, labels.get("topic", CLICKS))
            _, text = await system.output(fault.settings(system), *command)
            assert cause in text, f"binwright {' '.join(command)}: {text}"
    mended.set()

    async def silent() -> bool:
        return not any([await system.fires(alert, labels) for alert in fault.alerts])

    await seen(silent, f"{', '.join(fault.alerts)} is silent again", fault.silent_s)
    return took


async def all_shown(
    system: LiveSystem, faults: Sequence[Fault], fires_s: float
) -> dict[str, float]:
    """Make faults at the same time, as far as they allow that; see `shown`."""
    async with asyncio.TaskGroup() as tasks:
        running = []
        for fault in faults:
            mended = asyncio.Event()
            running.append(tasks.create_task(shown(system, fault, fires_s, mended)))
            if fault.stops_consumers:
                await mended.wait()
    return {alert: took_s for each in running for alert, took_s in each.result().items()}
