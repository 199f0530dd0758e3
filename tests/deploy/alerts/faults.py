"""Faults on purpose: each is made when its block is entered, and mended when the block is left."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial

import psutil
from tests.consumer.decoding.avro import record, written
from tests.deploy.alerts.live_system import (
    BILLS,
    CLICKS,
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
from tests.integration.landing import has_landed, produce, until
from tests.integration.security.secured_broker import USER

from binwright.consumer.lake.session import ReconnectingSession

ALTER_S = 60.0
DAY_S = 86_400.0
LATE_S = 16.0  # the rules' bucket is that of 15 s
LATE_COMMITS = 2  # the first one's series have no earlier value to grow from
FETCHED_S = 1.0  # longer than a broker keeps a fetch waiting
SECOND = record(("id", "long"), ("item", ["null", "string"]))

Block = AbstractAsyncContextManager[None]


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault, and the alerts that are to fire: with these labels, and until when."""

    alerts: tuple[str, ...]
    make: Callable[[LiveSystem], Block]
    labels: Callable[[LiveSystem], Labels]
    silent_s: float = 120.0  # after the end of the fault: more where a rule looks back


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
        await system.registry.start()
        numbers = [system.registry.register(subject, each) for each in (FIRST, SECOND)]
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
    """Have a table land each of its rows too late."""
    for number in range(1, LATE_COMMITS + 1):
        await system.run("table", "pause", SLOW, "--reason", "a fault on purpose")
        await produce(system.broker, SLOW, [b"late"])
        await asyncio.sleep(LATE_S)
        await system.run("table", "resume", SLOW)
        await until(partial(has_landed, system.lake, SLOW, number))
    yield


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


WINDOW_S = 600.0  # that two rules look back
TOGETHER = (
    Fault(("BinwrightBadRecords",), bad_records, of_table(ITEMS), WINDOW_S + 60),
    Fault(("BinwrightOffsetsLost",), lost_offsets, of_group, WINDOW_S + 60),
    Fault(("BinwrightTableRefused",), refused_table, of_table(BILLS)),
    Fault(("BinwrightTopicStuck",), registry_away, of_group),
    Fault(
        ("BinwrightCertificateExpires",),
        certificate_expires,
        lambda system: {"instance": system.certificate_of},
    ),
    Fault(("BinwrightFreshnessBurnsFast",), late_commits, of_table(SLOW), 360.0),
)
"""Faults that do not touch each other."""
ALONE = (
    Fault(("BinwrightTableNotLanding", "BinwrightRowsLate"), spark_away, of_table(CLICKS)),
    Fault(("BinwrightConsumerNotReady",), staging_away, of_group),
    Fault(("BinwrightPartitionsUnread", "BinwrightNoConsumers"), dead_consumers, of_group),
    Fault(("BinwrightNotReady",), broker_away, lambda system: {"instance": system.monitor}, 180.0),
)
"""Faults of what all share, one after the other."""


async def shown(system: LiveSystem, fault: Fault, fires_s: float) -> dict[str, float]:
    """Make a fault and mend it; return after how many seconds each alert fired.

    Raises:
        AssertionError: An alert did not fire in time, or did not fall silent.
    """
    labels = fault.labels(system)
    loop = asyncio.get_running_loop()
    began = loop.time()
    took: dict[str, float] = {}
    async with fault.make(system):
        for alert in fault.alerts:
            left_s = fires_s - (loop.time() - began)
            await seen(partial(system.fires, alert, labels), f"{alert} fires", left_s)
            took[alert] = loop.time() - began

    async def silent() -> bool:
        return not any([await system.fires(alert, labels) for alert in fault.alerts])

    await seen(silent, f"{', '.join(fault.alerts)} is silent again", fault.silent_s)
    return took
