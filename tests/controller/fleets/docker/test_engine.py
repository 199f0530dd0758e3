"""What the engine's client does with responses, and without."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from binwright.controller.fleets.docker.engine import Engine, open_engine
from binwright.protocol.errors import EngineRefused, EngineUnavailable, SettingsError
from binwright.testing.engine import FakeEngine, fake_engine


@pytest.fixture
async def engines() -> AsyncIterator[tuple[FakeEngine, Engine]]:
    async with fake_engine() as (fake, path), open_engine(path, 20.0) as engine:
        yield fake, engine


async def test_the_version_is_that_of_the_engine_s_api(engines: tuple[FakeEngine, Engine]) -> None:
    assert await engines[1].version() == "1.41"


async def test_containers_are_listed_by_their_labels(engines: tuple[FakeEngine, Engine]) -> None:
    fake, engine = engines
    fake.add_container("one", {"Labels": {"a": "1", "b": "2"}})
    fake.add_container("two", {"Labels": {"a": "2", "b": "2"}})
    fake.add_container("three", {"Labels": {"a": "1"}})
    listed = await engine.containers({"a": "1", "b": None})
    assert [each["Names"] for each in listed] == [["/one"]]


async def test_a_refusal_contains_the_engine_s_message(engines: tuple[FakeEngine, Engine]) -> None:
    fake, engine = engines
    fake.images["it:1"] = "sha256:1"
    fake.add_container("taken", {})
    with pytest.raises(EngineRefused, match=r"409: Conflict.*taken.*in use"):
        await engine.create("taken", {"Image": "it:1"})


async def test_a_missing_image_is_none(engines: tuple[FakeEngine, Engine]) -> None:
    assert await engines[1].image("it:1") is None
    with pytest.raises(EngineRefused, match="404: No such image: it:1"):
        await engines[1].create("name", {"Image": "it:1"})


@pytest.mark.parametrize("image", ["it", "it:latest"])
async def test_a_pull_fetches_one_tag(engines: tuple[FakeEngine, Engine], image: str) -> None:
    fake, engine = engines
    fake.registry["it:latest"] = "sha256:1"
    await engine.pull(image, 20.0)
    assert fake.images == {"it:latest": "sha256:1"}


async def test_a_pull_that_fails_after_the_status_200_is_an_error(
    engines: tuple[FakeEngine, Engine],
) -> None:
    with pytest.raises(EngineRefused, match="host:5000/it: manifest for host:5000/it:latest not"):
        await engines[1].pull("host:5000/it", 20.0)


async def test_removing_what_is_gone_is_no_error(engines: tuple[FakeEngine, Engine]) -> None:
    fake, engine = engines
    await engine.remove("gone")
    await engine.terminate("gone")
    fake.failing["unpause"] = (409, "it is not paused")
    await engine.unpause("running")


async def test_an_internal_error_of_the_engine_is_an_error(
    engines: tuple[FakeEngine, Engine],
) -> None:
    fake, engine = engines
    fake.failing["remove"] = (500, "driver failed")
    with pytest.raises(EngineRefused, match="500: driver failed"):
        await engine.remove("it")


async def test_a_call_without_a_response_times_out() -> None:
    async with fake_engine() as (fake, path), open_engine(path, 0.5) as engine:
        fake.silent.add("json")
        with pytest.raises(EngineUnavailable, match=r"no response in time: /containers/json"):
            await engine.containers({})


async def test_a_missing_socket_is_an_error_of_the_settings(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"no container engine at .*docker\.socket"):
        async with open_engine(tmp_path / "none.sock", 20.0):
            pass


async def test_an_engine_that_closes_the_connection_is_unavailable() -> None:
    async with fake_engine() as (_, path):
        socket = path.with_name("closing.sock")

        async def close(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.close()

        server = await asyncio.start_unix_server(close, str(socket))
        with pytest.raises(EngineUnavailable):
            async with open_engine(socket, 20.0):
                pass
        server.close()
        await server.wait_closed()
