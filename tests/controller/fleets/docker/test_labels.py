"""Containers that version 0.1 created, with the labels `realm` and `shape`, after an upgrade."""

import asyncio
from typing import Any

import pytest

from binwright.controller.fleets.docker.engine import open_engine
from binwright.controller.fleets.docker.fleet import DockerFleet
from binwright.controller.fleets.docker.spec import (
    OLD_PROJECT_LABEL,
    OLD_SPEC_LABEL,
    PROJECT_LABEL,
    SPEC_LABEL,
    ContainerSpec,
)
from binwright.protocol.model import Slot
from binwright.protocol.ports.fleet import Process
from binwright.runtime.clock import wall_ms
from binwright.runtime.run import background_tasks
from binwright.testing.engine import FakeContainer, FakeEngine, fake_engine

SPEC = ContainerSpec(project="here", group="g", image="consumer:1", network="net")
RENAMED = {PROJECT_LABEL: OLD_PROJECT_LABEL, SPEC_LABEL: OLD_SPEC_LABEL}


def add_old(fake: FakeEngine, slot: int, project: str = "here") -> FakeContainer:
    """Add a running container as version 0.1 created it."""
    body: dict[str, Any] = SPEC.container(Slot(slot), "sha256:1")
    labels = {RENAMED.get(name, name): value for name, value in body["Labels"].items()}
    labels[OLD_PROJECT_LABEL] = project
    found = fake.add_container(f"{project}-g-consumer-{slot}", {**body, "Labels": labels})
    found.state = "running"
    return found


async def test_a_container_with_the_old_labels_is_kept_and_retired_as_a_new_one_is() -> None:
    async with fake_engine() as (fake, path), open_engine(path, 20.0) as engine:
        fake.images["consumer:1"] = "sha256:1"
        kept, other = add_old(fake, 0), add_old(fake, 0, "elsewhere")
        add_old(fake, 1)
        fleet = DockerFleet(engine, SPEC, 4)
        async with asyncio.timeout(20):
            await fleet.reconcile({Slot(0)})
            while len(fake.containers) > 2:
                await fleet.reconcile({Slot(0)})
        assert set(fake.containers) == {kept.id, other.id}
        assert "create" not in fake.calls


async def test_the_end_of_a_container_with_the_old_labels_is_signalled() -> None:
    async with fake_engine() as (fake, path), open_engine(path, 20.0) as engine:
        old, other = add_old(fake, 0), add_old(fake, 0, "elsewhere")
        fleet, signalled = DockerFleet(engine, SPEC, 4), asyncio.Event()
        fleet.watch(signalled.set)
        process = Process(f"{old.id[:12]}/1/ab12cd34", wall_ms())
        async with background_tasks(fleet.run()):
            await asyncio.sleep(0.002)  # times are in ms
            fake.end(other.name, "exited")
            fake.end(old.name, "exited")
            async with asyncio.timeout(20):
                await signalled.wait()
        assert await fleet.find_ended({Slot(0): process}) == [Slot(0)]


@pytest.mark.parametrize("project", ["here", "elsewhere"])
def test_the_old_label_counts_only_without_the_new_one(project: str) -> None:
    labels = {**SPEC.labels(), OLD_PROJECT_LABEL: "elsewhere", PROJECT_LABEL: project}
    assert SPEC.owns(labels) is (project == "here")
