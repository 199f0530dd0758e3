"""The fleet from settings: which defaults the controller's own container gives, and its end."""

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from binwright.controller.fleets.docker.engine import open_engine
from binwright.controller.fleets.docker.setup import container_spec, docker_fleet, own_container
from binwright.protocol.errors import BrokerUnavailable, SettingsError
from binwright.protocol.model import Slot
from binwright.runtime.run import root_cause
from binwright.runtime.settings import Settings, load_settings
from binwright.testing.engine import FakeEngine, fake_engine

OWN: dict[str, Any] = {
    "Config": {"Hostname": "me", "Labels": {"com.docker.compose.project": "shop"}},
    "HostConfig": {"NetworkMode": "shop_default"},
}


def settings(**docker: Any) -> Settings:
    return load_settings(topics=("orders",), docker={"image": "consumer:1", **docker})


def test_outside_of_containers_the_defaults_are_the_engine_s() -> None:
    spec = container_spec(settings(), None)
    assert (spec.project, spec.network) == ("binwright", None)
    assert spec.name(Slot(2)) == "binwright-consumer-2"


def test_consumers_join_the_controller_s_network_and_compose_project() -> None:
    spec = container_spec(settings(), OWN)
    assert (spec.project, spec.network) == ("shop", "shop_default")
    assert spec.name(Slot(0)) == "shop-binwright-consumer-0"


def test_settings_override_the_own_container() -> None:
    spec = container_spec(settings(project="mine", network="other"), OWN)
    assert (spec.project, spec.network) == ("mine", "other")


def test_the_old_name_of_the_project_is_accepted_with_a_warning() -> None:
    with pytest.warns(FutureWarning, match=r"docker\.realm is deprecated.* docker\.project"):
        spec = container_spec(settings(realm="mine"), OWN)
    assert spec.project == "mine"


def test_the_old_name_is_accepted_as_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BINWRIGHT_DOCKER__REALM", "mine")
    with pytest.warns(FutureWarning, match=r"docker\.project"):
        assert load_settings().docker.project == "mine"


def test_the_project_by_both_names_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BINWRIGHT_DOCKER__REALM", "mine")
    with pytest.raises(SettingsError, match="project and realm are the same setting"):
        settings(project="mine")


def test_consumers_get_the_settings_that_they_read_and_added_variables() -> None:
    given = settings(environment=("AWS_REGION=eu", "EMPTY="))
    variables = container_spec(given, None).environment
    assert variables["BINWRIGHT_TOPICS"] == '["orders"]'
    assert (variables["AWS_REGION"], variables["EMPTY"]) == ("eu", "")
    assert variables["BINWRIGHT_CONTROLLER__MAX_SLOTS"] == "100"
    assert not {"BINWRIGHT_CONTROLLER__PACKING", "BINWRIGHT_DOCKER__IMAGE"} & variables.keys()


def test_consumers_get_the_staging_path_and_its_volume() -> None:
    given = load_settings(
        lake={"path": "/lake"}, staging={"path": "/stage"}, docker={"volumes": ("lake:/lake",)}
    )
    spec = container_spec(given, None)
    assert spec.environment["BINWRIGHT_STAGING__PATH"] == "/stage"
    assert spec.volumes == ("lake:/lake",)


def test_a_change_that_no_consumer_reads_replaces_no_container() -> None:
    one, two = (
        container_spec(load_settings(controller={"packing": each}), None)
        for each in ("sticky", "MWF")
    )
    assert one.digest == two.digest
    assert one.digest != container_spec(load_settings(consumer={"report_s": 2}), None).digest


async def test_the_own_container_is_found_by_the_host_name() -> None:
    async with fake_engine() as (fake, path), open_engine(path, 20.0) as engine:
        assert await own_container(engine) is None
        found = fake.add_container(socket.gethostname(), {})  # named like the host, by coincidence
        assert await own_container(engine) is None
        found.made_from["Hostname"] = socket.gethostname()
        assert await own_container(engine)


@pytest.fixture
async def engine() -> AsyncIterator[tuple[FakeEngine, Path]]:
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
async def test_a_controller_that_is_cancelled_ends_its_consumers_only_if_set(
    engine: tuple[FakeEngine, Path], *, ends: bool
) -> None:
    fake, path = engine
    up = asyncio.Event()
    given = settings(socket=path, ends_with_controller=ends)
    leading = asyncio.create_task(_lead(given, up, asyncio.Event()))
    await up.wait()
    leading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leading
    assert bool(fake.containers) != ends


async def test_a_controller_that_fails_leaves_its_consumers_running(
    engine: tuple[FakeEngine, Path],
) -> None:
    fake, path = engine
    up, end = asyncio.Event(), asyncio.Event()
    end.set()
    with pytest.raises(ExceptionGroup) as caught:
        await _lead(settings(socket=path, ends_with_controller=True), up, end)
    assert isinstance(root_cause(caught.value), BrokerUnavailable)
    assert len(fake.running()) == 1
