"""What the engine's client makes of a socket's answers."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from binwright.controller.docker.engine import Engine, opened
from binwright.core.errors import EngineRefused, EngineUnavailable, SettingsError
from binwright.testing.engine import FakeEngine, fake_engine


@pytest.fixture
async def both() -> AsyncIterator[tuple[FakeEngine, Engine]]:
    async with fake_engine() as (fake, path), opened(path, 20.0) as engine:
        yield fake, engine


async def test_an_engine_tells_which_api_it_speaks(both: tuple[FakeEngine, Engine]) -> None:
    assert await both[1].version() == "1.41"


async def test_containers_are_listed_by_their_labels(both: tuple[FakeEngine, Engine]) -> None:
    fake, engine = both
    fake.put("one", {"Labels": {"a": "1", "b": "2"}})
    fake.put("two", {"Labels": {"a": "2", "b": "2"}})
    fake.put("three", {"Labels": {"a": "1"}})
    listed = await engine.containers({"a": "1", "b": None})
    assert [each["Names"] for each in listed] == [["/one"]]


async def test_a_refusal_says_what_the_engine_said(both: tuple[FakeEngine, Engine]) -> None:
    fake, engine = both
    fake.images["it:1"] = "sha256:1"
    fake.put("taken", {})
    with pytest.raises(EngineRefused, match=r"409: Conflict.*taken.*in use"):
        await engine.create("taken", {"Image": "it:1"})


async def test_an_image_that_is_not_here_is_none(both: tuple[FakeEngine, Engine]) -> None:
    assert await both[1].image("it:1") is None
    with pytest.raises(EngineRefused, match="404: No such image: it:1"):
        await both[1].create("name", {"Image": "it:1"})


@pytest.mark.parametrize("image", ["it", "it:latest"])
async def test_a_pull_fetches_one_tag(both: tuple[FakeEngine, Engine], image: str) -> None:
    fake, engine = both
    fake.registry["it:latest"] = "sha256:1"
    await engine.pull(image, 20.0)
    assert fake.images == {"it:latest": "sha256:1"}


async def test_a_pull_that_fails_after_all_seemed_well_is_told(
    both: tuple[FakeEngine, Engine],
) -> None:
    with pytest.raises(EngineRefused, match="host:5000/it: manifest for host:5000/it:latest not"):
        await both[1].pull("host:5000/it", 20.0)


async def test_what_is_gone_already_is_as_good_as_removed(both: tuple[FakeEngine, Engine]) -> None:
    fake, engine = both
    await engine.remove("nobody")
    await engine.dismiss("nobody")
    fake.failing["unpause"] = (409, "it is not paused")
    await engine.unpause("somebody")


async def test_an_engine_s_own_fault_is_told(both: tuple[FakeEngine, Engine]) -> None:
    fake, engine = both
    fake.failing["remove"] = (500, "driver failed")
    with pytest.raises(EngineRefused, match="500: driver failed"):
        await engine.remove("it")


async def test_nobody_waits_for_ever() -> None:
    async with fake_engine() as (fake, path), opened(path, 0.5) as engine:
        fake.silent.add("json")
        with pytest.raises(EngineUnavailable, match=r"no answer in time: /containers/json"):
            await engine.containers({})


async def test_a_socket_that_is_not_there_is_the_settings_fault(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"no container engine at .*docker\.socket"):
        async with opened(tmp_path / "none.sock", 20.0):
            pass


async def test_an_engine_that_hangs_up_is_not_there() -> None:
    async with fake_engine() as (_, path):
        place = path.with_name("deaf.sock")

        async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.close()

        server = await asyncio.start_unix_server(hang_up, str(place))
        with pytest.raises(EngineUnavailable):
            async with opened(place, 20.0):
                pass
        server.close()
        await server.wait_closed()
