"""Staged files in an object store: S3 as moto's server has it, and one that only refuses."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.integration.object_store import (
    ObjectStore,
    missing_packages,
    staging_url,
)

from binwright.consumer.stage.file_staging import FileStaging
from binwright.local.server import HOST, reserve_port
from binwright.protocol.errors import StagingUnavailable
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import Record
from binwright.runtime.storage_path import below
from binwright.tables.ports import Footer, Staging
from binwright.testing.records import in_columns
from binwright.testing.staging import footer_of

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(
        bool(missing_packages()),
        reason=f"not installed: {missing_packages()} (pip install -e '.[dev]')",
    ),
]

P = TopicPartition("orders", 0)
ROWS = {P: [Record(offset, 0, None, b"x" * 100) for offset in range(100)]}
FILE, OTHER = "0-1-1-0a1b2c3d.parquet", "0-1-2-0a1b2c3d.parquet"


@pytest.fixture
async def staging(store: ObjectStore, request: pytest.FixtureRequest) -> AsyncIterator[FileStaging]:
    """This test's prefix in the store."""
    name = request.node.name.replace("_", "-")
    async with FileStaging(store.staging(name)) as staging:
        await staging.prepare()
        yield staging


async def test_an_object_that_is_gone_is_not_present(staging: Staging) -> None:
    await staging.write("orders", FILE, in_columns(ROWS), footer_of(ROWS))

    assert set(await staging.readable("orders", [FILE, OTHER])) == {FILE}
    assert set(await staging.existing("orders", [FILE, OTHER])) == {FILE}
    await staging.delete("orders", [FILE, OTHER])
    assert set(await staging.existing("orders", [FILE, OTHER])) == set()


async def test_old_objects_are_found_in_the_directories_of_all_topics(staging: Staging) -> None:
    for topic in ("orders", "clicks"):
        await staging.write(topic, FILE, in_columns(ROWS), footer_of(ROWS))

    assert await staging.directories() == {"orders", "clicks"}
    assert await staging.older("orders", 3_600.0) == set()
    assert await staging.older("orders", -3_600.0) == {FILE}


async def test_an_object_names_what_it_holds(staging: Staging) -> None:
    footers = {
        FILE: footer_of(ROWS, "an id"),
        OTHER: Footer("an id", 100, dict.fromkeys(range(5000), (2**60, 2**60 + 1)), newest_ms=0),
    }
    for name, footer in footers.items():
        await staging.write("orders", name, in_columns(ROWS), footer)

    assert await staging.footers("orders", [FILE, OTHER, "lost"]) == footers


async def test_objects_that_a_version_before_staged_above_are_taken_over(
    store: ObjectStore, request: pytest.FixtureRequest
) -> None:
    above = store.staging(request.node.name.replace("_", "-"))
    lease, zombie = f"lease-{'a' * 32}-2.parquet", f"lease-{'b' * 32}-1.parquet"
    async with FileStaging(above) as before:
        await before.write("orders", FILE, in_columns(ROWS), footer_of(ROWS, "an id"))
        await before.write_lease("orders", zombie)
        async with FileStaging(below(above, "g"), moved=True) as staging:
            await staging.prepare("group g of cluster x")
            await staging.prepare("group g of cluster x")
            with pytest.raises(StagingUnavailable, match=r"of cluster x.*this is group g"):
                await staging.prepare("group g of cluster y")
            await staging.write_lease("orders", lease)
            await staging.delete_other_leases("orders", lease)
            assert await before.existing("orders", [zombie]) == set()
            found = await staging.footers("orders", [FILE, OTHER])
            assert found == {FILE: footer_of(ROWS, "an id")}
            assert await staging.readable("orders", [FILE]) == {FILE}
            assert await before.existing("orders", [FILE]) == set()
            assert {*await staging.sizes("orders")} == {FILE}
            assert await staging.directories() == {"orders"}


async def test_a_damaged_object_is_distinguished_from_an_intact_one(
    staging: Staging, store: ObjectStore, request: pytest.FixtureRequest
) -> None:
    await staging.write("orders", FILE, in_columns(ROWS), footer_of(ROWS))
    place = f"{request.node.name.replace('_', '-')}/orders"
    content = await asyncio.to_thread(store.read, f"{place}/{FILE}")
    damaged = {"short": content[:-20], "bent": content[:50] + bytes(200) + content[250:]}
    for name, instead in damaged.items():
        await asyncio.to_thread(store.put, f"{place}/{name}", instead)

    assert await staging.readable("orders", [FILE, *damaged]) == {FILE}


async def _refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer any request as a store does whose keys have expired."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    await writer.drain()
    writer.close()


async def test_a_store_that_refuses_proves_nothing_about_its_files() -> None:
    """With expired keys each file would count as damaged, and be given up."""
    server = await asyncio.start_server(_refuse, HOST, 0)
    async with server, FileStaging(staging_url(server.sockets[0].getsockname()[1], "x")) as staging:
        for look in (staging.readable, staging.existing, staging.footers):
            with pytest.raises(StagingUnavailable, match="ACCESS_DENIED"):
                await look("orders", [FILE])


async def test_a_store_that_cannot_be_reached_proves_nothing_about_its_files() -> None:
    with reserve_port() as port:
        pass  # nothing listens there
    async with FileStaging(staging_url(port, "x")) as staging:
        with pytest.raises(StagingUnavailable, match="NETWORK_CONNECTION"):
            await staging.readable("orders", [FILE])
