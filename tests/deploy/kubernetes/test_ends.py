"""Which processes have ended: with a real API server and pods of real processes."""

import asyncio
import os
import signal

import pytest
from tests.deploy.kubernetes.sandbox import Sandbox, pid_of, until

from binwright.controller.fleets.kubernetes.fleet import KubernetesFleet
from binwright.kubernetes.objects import Obj, key_of, name_of
from binwright.protocol.model import Slot
from binwright.protocol.ports.fleet import Process
from binwright.runtime.clock import wall_ms

pytestmark = [pytest.mark.kubernetes, pytest.mark.asyncio(loop_scope="session")]

S0, S1 = Slot(0), Slot(1)
AT_ONCE_S = 2.0


def hello_now(pod: Obj) -> Process:
    """Return a process of this pod that sends its Hello now."""
    return Process(f"{name_of(pod)}/1/ab12cd34", wall_ms())


async def next_second(process: Process) -> None:
    """Wait until its Hello was in an earlier second: a kubelet's times have whole seconds."""
    await until(lambda: wall_ms() // 1000 > process.sent_ms // 1000)


async def two_slots(sandbox: Sandbox) -> tuple[KubernetesFleet, asyncio.Event]:
    """Return a fleet with two running slots, and the event that it sets when a process ends."""
    fleet, signalled = await sandbox.fleet(), asyncio.Event()
    fleet.watch(signalled.set)
    await fleet.reconcile([S0, S1])

    await sandbox.wait_for_running(0, 1)
    return fleet, signalled


async def slot_0_ends(
    fleet: KubernetesFleet, signalled: asyncio.Event, processes: dict[Slot, Process]
) -> None:
    """Ask at each signal, as a controller does, until slot 0's process has ended."""
    async with asyncio.timeout(AT_ONCE_S):
        while True:
            signalled.clear()
            if ended := await fleet.find_ended(processes):
                break
            await signalled.wait()
    assert ended == [S0]


async def test_a_process_killed_in_its_pod_has_ended_and_the_next_one_has_not(
    sandbox: Sandbox,
) -> None:
    fleet, signalled = await two_slots(sandbox)
    pods = await sandbox.pods()
    processes = {slot: hello_now(pods[slot]) for slot in (S0, S1)}
    await next_second(processes[S0])
    assert await fleet.find_ended(processes) == []
    os.kill(pid_of(pods[S0]), signal.SIGKILL)
    await slot_0_ends(fleet, signalled, processes)

    async def another_runs() -> bool:
        return pid_of((await sandbox.pods())[S0]) != pid_of(pods[S0])

    await until(another_runs)
    again = hello_now((await sandbox.pods())[S0])
    assert again.host == processes[S0].host
    assert await fleet.find_ended({S0: again}) == []


async def test_the_process_of_a_pod_deleted_without_grace_has_ended(sandbox: Sandbox) -> None:
    """As when its node is lost: whether its process still runs is unknown."""
    fleet, signalled = await two_slots(sandbox)
    pods = await sandbox.pods()
    processes = {slot: hello_now(pods[slot]) for slot in (S0, S1)}
    assert await fleet.find_ended(processes) == []
    await sandbox.api.delete(f"{sandbox.path('pods')}/{name_of(pods[S0])}", grace_s=0)
    await slot_0_ends(fleet, signalled, processes)


async def test_a_pod_that_the_watch_has_not_delivered_yet_is_not_gone(sandbox: Sandbox) -> None:
    """Its Hello may arrive from Kafka sooner than the pod from the API server."""
    cluster = await sandbox.cluster()
    fleet = await sandbox.fleet(cluster=cluster)
    await fleet.reconcile([S0])

    await sandbox.wait_for_running(0)
    pod = (await sandbox.pods())[S0]
    cluster.pods.drop(*key_of(pod))
    assert await fleet.find_ended({S0: hello_now(pod)}) == []


async def test_a_process_outside_the_cluster_is_not_found_ended(sandbox: Sandbox) -> None:
    fleet = await sandbox.fleet()
    await fleet.reconcile([S0])
    assert await fleet.find_ended({S0: Process("laptop/4711/ab12cd34", 1)}) == []
