"""`binwright group` on a real broker and Spark, with a real controller and real consumers."""

import asyncio
import json
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import aiohttp
import psutil
import pytest
from aiokafka import AIOKafkaProducer
from tests.integration.command_line import binwright
from tests.integration.landing import rows, until
from tests.integration.topics import create_topic

from binwright.inspect.audit import audit
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.local.server import HOST, reserve_port
from binwright.local.stack import Stack, services
from binwright.look.orders_topic import publish_order
from binwright.protocol.orders import Savings, SimulatedCost
from binwright.runtime.settings.group import Settings, load_settings
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.runtime.web import basic_login

pytestmark = pytest.mark.integration

GROUP, TOPIC, PARTITIONS = "steered-by-people", "people-orders", 4
DEADLINE_S = 240.0
TOKEN = "of this test"  # noqa: S105 - of this test
RECORDS = 20  # of each partition, at a time

Readers = dict[int, int]
"""Partition -> the consumer that reads it."""


def settings_of(broker: str, spark: str, lake: Path) -> Settings:
    return load_settings(
        group=GROUP,
        topics=[TOPIC],
        kafka={"bootstrap_servers": broker},
        lake={"path": str(lake), "spark": spark, "freshness_s": 1.0},
        monitor={"topic": f"{GROUP}.metrics", "interval_s": 1.0, "window_s": 5.0},
        controller={
            "process_logs": str(lake.parent / "consumers"),
            "limit_bytes_per_s": 1e8,  # the load asks for one consumer
            "replan_interval_s": 3600.0,  # adopting a shorter one has it save consumers
            "max_slots": 8,
        },
    )


@dataclass
class Person:
    """A person with a terminal, beside a group that runs."""

    broker: str
    stack: Stack

    async def asks(self, *arguments: str) -> tuple[int, str]:
        """Run the command line; return its exit code, and what it wrote."""
        options = ("--group", GROUP, "--bootstrap-servers", self.broker)
        code, out, errors = await binwright(*arguments, *options)
        return code, " ".join((out + errors).split())

    async def orders(self, *arguments: str) -> str:
        code, out = await self.asks("group", *arguments)
        assert code == 0, out
        return out

    async def status(self) -> dict[str, Any]:
        code, out = await self.asks("status", "--json")
        assert code == 0, out
        (found,) = json.loads(out)
        return dict(found)

    async def waits_for_the_group(self) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while (await self.asks("status", "--json"))[0]:  # noqa: ASYNC110 - only asking tells
                await asyncio.sleep(0.5)

    async def sees(self, holds: Callable[[dict[str, Any], Readers], bool]) -> Readers:
        """Look again and again until this holds; return who reads what."""
        async with asyncio.timeout(DEADLINE_S):
            while True:
                found = await self.status()
                if holds(found, readers(found)):
                    return readers(found)

    def kill(self, slot: int) -> None:
        """Kill a consumer's process."""
        commands = {pid: psutil.Process(pid).cmdline() for pid in self.stack.consumer_pids()}
        pairs = {pid: set(pairwise(command)) for pid, command in commands.items()}
        (pid,) = (pid for pid, found in pairs.items() if ("--slot", str(slot)) in found)
        psutil.Process(pid).send_signal(signal.SIGKILL)


def readers(found: dict[str, Any]) -> Readers:
    return {
        int(name.rpartition("-")[2]): each["slot"]
        for each in found["consumers"]
        if each["state"] != "silent"
        for name in each["partitions"]
    }


def all_read(found: dict[str, Any], at: Readers) -> bool:
    return found["state"] == "steady" and len(at) == PARTITIONS


async def produce(broker: str) -> None:
    async with AIOKafkaProducer(bootstrap_servers=broker) as producer:
        for number in range(RECORDS):
            for partition in range(PARTITIONS):
                value = b"%d" % number
                await producer.send_and_wait(TOPIC, value, key=b"k", partition=partition)


async def scale_and_pin(person: Person) -> Readers:
    """Have three consumers read, one of them by a pin."""
    await person.orders("scale", "3", "--reason", "a backfill")
    await person.sees(lambda s, at: all_read(s, at) and len(set(at.values())) == 3)

    # pin, to a consumer that does not run
    await person.orders("pin", f"{TOPIC}-1", "5", "--reason", "its cache")
    at = await person.sees(lambda s, at: all_read(s, at) and at[1] == 5)
    _, why = await person.asks("explain", f"{TOPIC}-1")
    assert f"{TOPIC}-1 is pinned to consumer 5 by" in why
    code, out = await person.asks("group", "pin", "unknown-1", "5", "--reason", "x")
    assert (code, f"its topics: {TOPIC}" in out) == (2, True), out
    await person.orders("drain", "8", "--reason", "x")
    await person.sees(
        lambda s, _: any("no such consumer: controller.max_slots is 8" in h for h in s["held"])
    )
    await person.orders("uncordon", "8")
    return at


async def freeze_and_kill(person: Person, at: Readers) -> Readers:
    """In a freeze no order moves anything, and what a dead consumer read gets a reader."""
    await person.orders("freeze", "--until", "1h", "--reason", "release")
    await person.orders("scale", "2", "--reason", "less")
    await person.sees(
        lambda s, _: any("'release'; waits: 3 of 2 consumers read" in h for h in s["held"])
    )
    _, why = await person.asks("explain")
    assert "moves are frozen by" in why
    reasons = {each["about"]: each["reason"] for each in (await person.status())["orders"]}
    assert reasons == {
        "freeze": "release",
        f"pin/{TOPIC}/1": "its cache",
        "scale": "less",
    }
    frozen = await person.sees(all_read)
    assert frozen == at, "nothing has moved"
    victim = next(slot for slot in sorted(set(at.values())) if slot != 5)
    person.kill(victim)
    lost = {p for p, slot in at.items() if slot == victim}
    found = await person.sees(
        lambda s, now: all_read(s, now) and not any(now[p] == victim for p in lost)
    )
    assert {p: s for p, s in found.items() if p not in lost} == {
        p: s for p, s in at.items() if p not in lost
    }
    await person.orders("unfreeze")
    code, out = await person.asks("group", "unfreeze")
    assert (code, "no order of this group is about that" in out) == (2, True), out
    return await person.sees(lambda s, at: all_read(s, at) and len(set(at.values())) == 2)


async def drain_and_lift(person: Person, at: Readers, directory: Path) -> None:
    """Drain a consumer, then lift all orders: the load alone decides again."""
    drained = next(slot for slot in sorted(set(at.values())) if slot != 5)
    await person.orders("drain", str(drained), "--reason", "a new disk")
    code, out = await person.asks("group", "pin", TOPIC, str(drained), "--reason", "x")
    assert (code, f"uncordon {drained}` first" in out) == (2, True), out
    await person.sees(
        lambda s, at: (
            all_read(s, at)
            and drained not in {each["slot"] for each in s["consumers"]}
            and len(set(at.values())) == 2
        )
    )
    listed = await person.orders("orders")
    assert f"consumer {drained} is drained, by" in listed
    assert ": a new disk" in listed
    for lift in (("uncordon", str(drained)), ("unpin", f"{TOPIC}-1")):
        await person.orders(*lift)
    await order_by_the_page(person, directory, {"order": "unscale"})
    await adopt(person)
    await person.sees(lambda s, at: all_read(s, at) and len(set(at.values())) == 1)
    _, why = await person.asks("explain")
    assert "controller.replan_interval_s is 1 instead of 3600" in why
    await person.orders("unadopt", "replan_interval_s")
    assert "no order is in force" in await person.orders("orders")


async def adopt(person: Person) -> None:
    """Adopt a change that is proposed as `binwright shadow own --publish` does it."""
    own = SimulatedCost(rule="binwright", replica_minutes=9, within_sla=1)
    proposed = replace(own, change="replan_interval_s=1", replica_minutes=8)
    found = Savings(from_ms=0, until_ms=1, sla_s=5, own=own, proposed=proposed, replaces="3600")
    async with KafkaControlTopics(KafkaSettings(bootstrap_servers=person.broker)) as bus:
        await publish_order(bus, GROUP, found)
    number = (await person.status())["adoptable"]
    _, shown = await person.asks("status")
    assert f"`binwright group adopt {number}`" in shown
    code, out = await person.asks("group", "adopt", str(number + 1), "--reason", "x")
    assert (code, f"that is {number}, replan_interval_s=1" in out) == (2, True), out
    await person.orders("adopt", str(number), "--until", "1h", "--reason", "saves a consumer")
    assert (await person.status())["adoptable"] is None


async def order_by_the_page(person: Person, directory: Path, order: dict[str, Any]) -> None:
    """Give an order as the page of a browser does, to `binwright page`."""
    token = directory / "page-token"
    token.write_text(TOKEN)
    with reserve_port() as found:
        port = found
    page = ("-m", "binwright.cli", "page", "--port", str(port), "--group", GROUP)
    options = ("--orders", "--token-file", str(token), "--bootstrap-servers", person.broker)
    process = await asyncio.create_subprocess_exec(
        sys.executable, *page, *options, stderr=asyncio.subprocess.PIPE
    )
    headers = {"Authorization": basic_login("ann", TOKEN)}
    try:
        async with aiohttp.ClientSession(headers=headers) as session, asyncio.timeout(DEADLINE_S):
            while True:
                try:
                    at = f"http://{HOST}:{port}/orders"
                    async with session.post(at, json=order) as answer:
                        assert answer.status == 200, await answer.text()
                        break
                except aiohttp.ClientConnectionError:  # it starts
                    await asyncio.sleep(0.1)
    finally:
        process.terminate()
        async with asyncio.timeout(DEADLINE_S):
            _, errors = await process.communicate()
    assert b"ann by the page: the number of consumers follows the load" in errors


@pytest.mark.nightly
async def test_a_person_steers_a_group_and_nothing_is_lost(
    broker: str, spark_url: str, lake: Path, tmp_path: Path
) -> None:
    settings = settings_of(broker, spark_url, lake)
    await create_topic(settings.kafka, TOPIC, PARTITIONS)
    await produce(broker)
    async with services(settings, lake.parent / "logs") as stack:
        person = Person(broker, stack)
        await person.waits_for_the_group()
        await person.sees(all_read)
        at = await scale_and_pin(person)
        at = await freeze_and_kill(person, at)
        await drain_and_lift(person, at, tmp_path)
        await produce(broker)
        await until(lambda: len(rows(lake, TOPIC)) == 2 * RECORDS * PARTITIONS)
    result = await audit([TOPIC], settings.kafka, settings.lake)
    assert result.clean
