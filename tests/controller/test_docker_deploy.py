"""From settings to containers: what is taken from the controller's own, and what stays behind."""

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from binwright.controller.docker.deploy import docker_fleet, own_container, shaped
from binwright.controller.docker.engine import opened
from binwright.core.errors import BrokerUnavailable
from binwright.core.model import Slot
from binwright.shell.run import first_cause
from binwright.shell.settings import Settings, load_settings
from binwright.testing.engine import FakeEngine, fake_engine

OWN: dict[str, Any] = {
    "Config": {"Hostname": "me", "Labels": {"com.docker.compose.project": "shop"}},
    "HostConfig": {"NetworkMode": "shop_default"},
}


def settings(**docker: Any) -> Settings:
    return load_settings(topics=("orders",), docker={"image": "consumer:1", **docker})


def test_outside_of_containers_the_engine_chooses() -> None:
    shape = shaped(settings(), None)
    assert (shape.realm, shape.network) == ("binwright", None)
    assert shape.name(Slot(2)) == "binwright-consumer-2"


def test_consumers_join_the_controller_s_network_and_bear_its_project_s_name() -> None:
    shape = shaped(settings(), OWN)
    assert (shape.realm, shape.network) == ("shop", "shop_default")
    assert shape.name(Slot(0)) == "shop-binwright-consumer-0"


def test_what_is_set_wins() -> None:
    shape = shaped(settings(realm="mine", network="other"), OWN)
    assert (shape.realm, shape.network) == ("mine", "other")


def test_consumers_get_the_settings_that_they_read_and_what_else_is_given() -> None:
    given = settings(environment=("AWS_REGION=eu", "EMPTY="))
    told = shaped(given, None).environment
    assert told["BINWRIGHT_TOPICS"] == '["orders"]'
    assert (told["AWS_REGION"], told["EMPTY"]) == ("eu", "")
    assert told["BINWRIGHT_CONTROLLER__MAX_SLOTS"] == "100"
    assert not {"BINWRIGHT_CONTROLLER__PACKING", "BINWRIGHT_DOCKER__IMAGE"} & told.keys()


def test_consumers_are_told_where_to_stage_and_see_the_volume() -> None:
    given = load_settings(
        lake={"path": "/lake"}, staging={"path": "/stage"}, docker={"volumes": ("lake:/lake",)}
    )
    shape = shaped(given, None)
    assert shape.environment["BINWRIGHT_STAGING__PATH"] == "/stage"
    assert shape.volumes == ("lake:/lake",)


def test_a_change_that_no_consumer_reads_makes_no_new_containers() -> None:
    one, two = (
        shaped(load_settings(controller={"packing": each}), None) for each in ("sticky", "MWF")
    )
    assert one.digest == two.digest
    assert one.digest != shaped(load_settings(consumer={"report_s": 2}), None).digest


async def test_our_own_container_is_found_by_the_host_name() -> None:
    async with fake_engine() as (fake, path), opened(path, 20.0) as engine:
        assert await own_container(engine) is None
        found = fake.put(socket.gethostname(), {})  # named as our host is, by accident
        assert await own_container(engine) is None
        found.made_from["Hostname"] = socket.gethostname()
        assert await own_container(engine)


@pytest.fixture
async def both() -> AsyncIterator[tuple[FakeEngine, Path]]:
    async with fake_engine() as (fake, path):
        fake.images["consumer:1"] = "sha256:1"
        yield fake, path


async def _lead(given: Settings, up: asyncio.Event, end: asyncio.Event) -> None:
    async with docker_fleet(given) as fleet:
        await fleet.reconcile({Slot(0)})
        up.set()
        await end.wait()
        raise BrokerUnavailable("gone")


@pytest.mark.parametrize("ends", [True, False])
async def test_who_is_asked_to_end_leaves_consumers_unless_told_otherwise(
    both: tuple[FakeEngine, Path], *, ends: bool
) -> None:
    fake, path = both
    up = asyncio.Event()
    given = settings(socket=path, ends_with_controller=ends)
    leading = asyncio.create_task(_lead(given, up, asyncio.Event()))
    await up.wait()
    leading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leading
    assert bool(fake.containers) != ends


async def test_who_fails_leaves_consumers_at_work(both: tuple[FakeEngine, Path]) -> None:
    fake, path = both
    up, end = asyncio.Event(), asyncio.Event()
    end.set()
    with pytest.raises(ExceptionGroup) as caught:
        await _lead(settings(socket=path, ends_with_controller=True), up, end)
    assert isinstance(first_cause(caught.value), BrokerUnavailable)
    assert len(fake.running()) == 1
