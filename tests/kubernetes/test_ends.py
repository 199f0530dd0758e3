"""Whose process has ended, by a real API server and its pods' real processes."""

import asyncio
import os
import signal
import time

import pytest

from binwright.controller.fleets.kubernetes import KubernetesFleet
from binwright.controller.kube.api import Obj
from binwright.controller.kube.mirror import key_of, name_of
from binwright.core.model import Slot
from binwright.core.ports import Process

from .site import Site, pid_of, until

pytestmark = [pytest.mark.kubernetes, pytest.mark.asyncio(loop_scope="session")]

S0, S1 = Slot(0), Slot(1)
AT_ONCE_S = 2.0


def said_now(pod: Obj) -> Process:
    """Return a process of this pod that sends its Hello just now."""
    return Process(f"{name_of(pod)}/1/ab12cd34", time.time_ns() // 1_000_000)


async def second_after(process: Process) -> None:
    """Wait until its Hello was in an earlier second: a kubelet tells seconds."""
    await until(lambda: time.time_ns() // 1_000_000_000 > process.sent_ms // 1000)


async def two_slots(site: Site) -> tuple[KubernetesFleet, asyncio.Event]:
    """Return a fleet of two slots that run, and what it sets when a process has ended."""
    fleet, told = await site.fleet(), asyncio.Event()
    fleet.watch(told.set)
    await fleet.reconcile([S0, S1])

    async def both_run() -> bool:
        return await site.running() == {0, 1}

    await until(both_run)
    return fleet, told


async def found(fleet: KubernetesFleet, told: asyncio.Event, there: dict[Slot, Process]) -> None:
    """Ask whenever there is news, as a controller does, until slot 0's process has ended."""
    async with asyncio.timeout(AT_ONCE_S):
        while True:
            told.clear()
            if ended := await fleet.ended(there):
                break
            await told.wait()
    assert ended == [S0]


async def test_a_process_that_is_killed_in_its_pod_is_told_and_the_next_one_is_not(
    site: Site,
) -> None:
    fleet, told = await two_slots(site)
    pods = await site.pods()
    there = {slot: said_now(pods[slot]) for slot in (S0, S1)}
    await second_after(there[S0])
    assert await fleet.ended(there) == []
    os.kill(pid_of(pods[S0]), signal.SIGKILL)
    await found(fleet, told, there)

    async def another_runs() -> bool:
        return pid_of((await site.pods())[S0]) != pid_of(pods[S0])

    await until(another_runs)
    again = said_now((await site.pods())[S0])
    assert again.host == there[S0].host
    assert await fleet.ended({S0: again}) == []


async def test_a_pod_that_is_deleted_without_grace_is_told(site: Site) -> None:
    """As when its node is lost: whether its process lives nobody knows."""
    fleet, told = await two_slots(site)
    pods = await site.pods()
    there = {slot: said_now(pods[slot]) for slot in (S0, S1)}
    assert await fleet.ended(there) == []
    await site.api.delete(f"{site.path('pods')}/{name_of(pods[S0])}", grace_s=0)
    await found(fleet, told, there)


async def test_a_pod_that_the_watch_has_not_shown_yet_is_not_taken_for_gone(site: Site) -> None:
    """Its Hello may come sooner by Kafka than the pod by the API server."""
    cluster = await site.cluster()
    fleet = await site.fleet(cluster=cluster)
    await fleet.reconcile([S0])

    async def runs() -> bool:
        return await site.running() == {0}

    await until(runs)
    pod = (await site.pods())[S0]
    cluster.pods.drop(*key_of(pod))
    assert await fleet.ended({S0: said_now(pod)}) == []


async def test_of_a_process_outside_the_cluster_nothing_is_known(site: Site) -> None:
    fleet = await site.fleet()
    await fleet.reconcile([S0])
    assert await fleet.ended({S0: Process("laptop/4711/ab12cd34", 1)}) == []
