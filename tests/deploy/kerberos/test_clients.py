"""What connects by Kerberos measures, reads and goes on, as the principal that it is."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.deploy.kerberos.kerberos_broker import (
    LIFE_S,
    ORDERS,
    OTHER,
    OWNER,
    READER,
    READERS,
    RECORD,
    KerberosBroker,
)
from tests.waiting import until

from binwright.kafka.client import LATEST, ClusterClient
from binwright.local.child import Child, Command

pytestmark = [pytest.mark.kerberos, pytest.mark.integration]

DEADLINE_S, GRACE_S = 60.0, 10.0
MEASUREMENTS = "binwright.metrics"
LIVES = 2.5


async def member(kerberos: KerberosBroker, user: str, group: str) -> tuple[str, str]:
    """Run a member of a group to its end; return its output and errors."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.deploy.kerberos.group_member", ORDERS, group),
        env=kerberos.environment(user),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(DEADLINE_S):
        output, errors = await process.communicate()
    return output.decode(), errors.decode()


async def test_a_member_of_a_group_reads_what_its_principal_may(kerberos: KerberosBroker) -> None:
    output, errors = await member(kerberos, READER, READERS)
    assert output == RECORD, errors


@pytest.mark.parametrize(
    ("user", "group", "refusal"),
    [(READER, "others", "GroupAuthorizationFailed"), (OTHER, READERS, "AuthorizationFailed")],
)
async def test_the_authorizer_knows_who_it_is(
    kerberos: KerberosBroker, user: str, group: str, refusal: str
) -> None:
    output, errors = await member(kerberos, user, group)
    assert refusal in errors
    assert not output


@asynccontextmanager
async def monitor(kerberos: KerberosBroker, directory: Path) -> AsyncIterator[Path]:
    """Run a monitor while the body runs, and expect that it still runs then; yield its log."""
    measuring = {
        "BINWRIGHT_TOPICS": json.dumps([ORDERS]),
        "BINWRIGHT_MONITOR__INTERVAL_S": "0.5",
        "BINWRIGHT_MONITOR__WINDOW_S": "1",
    }
    log = directory / "monitor.log"
    command = Command(
        title="the monitor",
        argv=(sys.executable, "-m", "binwright.monitor"),
        directory=directory,
        log=log,
        environment=kerberos.environment(OWNER) | measuring,
    )
    child = Child(command)
    try:
        yield log
        assert child.returncode is None, child.tail()
    finally:
        await child.stop(grace_s=GRACE_S)


async def measured(kerberos: KerberosBroker) -> int:
    """Return how many measurements there are."""
    async with ClusterClient(kerberos.owner()) as cluster:
        leaders = await cluster.leaders(MEASUREMENTS)
        if not leaders:
            return 0
        (broker,) = {*leaders.values()}
        return sum((await cluster.offsets(broker, {MEASUREMENTS: list(leaders)}, LATEST)).values())


async def more_measured(kerberos: KerberosBroker) -> None:
    """Wait until there are more measurements than now."""
    before = await measured(kerberos)
    while await measured(kerberos) <= before:  # noqa: ASYNC110 - another process works
        await asyncio.sleep(0.2)


async def test_a_monitor_measures_on_as_tickets_end_and_after_its_kdc_was_away(
    kerberos: KerberosBroker, tmp_path: Path
) -> None:
    """Its connections end every few seconds; each new one needs a ticket that is valid."""
    kdc = kerberos.kdc
    async with asyncio.timeout(2 * DEADLINE_S), monitor(kerberos, tmp_path) as log:
        await more_measured(kerberos)
        began = kdc.issued(OWNER)[-1]
        await until(lambda: kdc.issued(OWNER)[-1] >= began + LIVES * LIFE_S)
        await more_measured(kerberos)
        assert "Kerberos" not in log.read_text(), "no connection failed"
        await kdc.server.stop()
        try:
            await until(lambda: "Kerberos gives no ticket" in log.read_text())
        finally:
            await kdc.server.start()
        await more_measured(kerberos)
