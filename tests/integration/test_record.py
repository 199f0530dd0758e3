"""Recorded from a real topic, to a file and to a Delta table, and said again."""

import asyncio
import json
import math
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.integration.command_line import binwright

from binwright.cli.terminal import Console
from binwright.kafka.control_records import METRICS_CONFIG
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.protocol import wire
from binwright.protocol.errors import SettingsError, StreamError
from binwright.protocol.metrics import Measurement, PartitionRate, decode_measurement
from binwright.protocol.model import BytesPerSecond, TopicPartition
from binwright.runtime.settings.group import Settings
from binwright.streams import recording, stream_file, streams
from binwright.streams.commands.record import Recorder
from binwright.streams.commands.replay import Replayer
from binwright.streams.location import StreamLocation, write_table
from binwright.streams.streams import PerCent
from binwright.streams.table import copy_table

pytestmark = pytest.mark.integration

DEADLINE_S = 300.0  # a cold Spark on a busy machine takes its time
QUIET = Console(quiet=True)


def sent(number: int) -> Measurement:
    rate = PartitionRate(0, BytesPerSecond(number * 1000.0), 30, number, 0, None)
    return Measurement(
        topic="orders",
        at_ms=number * 31_000,
        monitor="m",
        number=number,
        interval_s=31,
        count=1,
        partitions=(rate,),
    )


def at(broker: str, topic: str) -> Settings:
    kafka = {"bootstrap_servers": broker}
    return Settings.model_validate({"kafka": kafka, "monitor": {"topic": topic}})


async def publish(settings: Settings, count: int) -> None:
    async with KafkaControlTopics(settings.kafka) as bus:
        await bus.ensure(settings.monitor.topic, 1, METRICS_CONFIG)
        for number in range(count):
            message = sent(number)
            await bus.publish(settings.monitor.topic, 0, b"orders", wire.encode(message))


async def received(settings: Settings, count: int) -> list[Measurement]:
    async with KafkaControlTopics(settings.kafka) as bus:
        reader = await bus.reader(settings.monitor.topic, 0, 0)
        found: list[Measurement] = []
        while len(found) < count:
            found += [decode_measurement(r.value) for r in await reader.read(1)]
        await reader.close()
        return found


async def recorded_and_replayed(
    location: StreamLocation, broker: str, name: str
) -> list[Measurement]:
    original, again = at(broker, name), at(broker, f"{name}.again")
    async with asyncio.timeout(DEADLINE_S):
        await publish(original, 5)
        await Recorder(location, original, from_beginning=True, seconds=1.5).run()
        await Replayer(location, again, math.inf).run()
        return await received(again, 5)


async def test_a_file_is_recorded_and_replayed(
    broker: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    file = tmp_path / "recorded.jsonl"
    location = StreamLocation(QUIET, tmp_path, str(file), None)
    found = await recorded_and_replayed(location, broker, request.node.name)
    assert [m.partitions for m in found] == [sent(n).partitions for n in range(5)]
    assert recording.read(file).measurements == tuple(map(sent, range(5)))
    capacity = Settings().controller.capacity
    per_cent = [100 * 1000.0 * number / capacity for number in range(5)]
    assert [list(row.values()) for row in stream_file.read(file)] == [[rate] for rate in per_cent]


async def test_a_delta_table_is_recorded_and_replayed(
    broker: str, spark_url: str, lake: Path, request: pytest.FixtureRequest
) -> None:
    location = StreamLocation(QUIET, lake, f"delta://{lake}/recorded", spark_url)
    found = await recorded_and_replayed(location, broker, request.node.name)
    assert [m.partitions for m in found] == [sent(n).partitions for n in range(5)]
    assert (lake / "recorded" / "_delta_log").is_dir()
    lab = ("lab", "packing", "--algorithms", "mwf", "--spark", spark_url)
    async with asyncio.timeout(DEADLINE_S):
        code, out = await command(*lab, "--stream", location.name)
    assert (code, "mwf" in out) == (0, True), out


async def test_a_table_that_does_not_exist_is_reported(spark_url: str, lake: Path) -> None:
    location = StreamLocation(QUIET, lake, f"delta://{lake}/nothing", spark_url)
    with pytest.raises(StreamError, match="no recording"):
        await location.read()
    with pytest.raises(SettingsError, match="name a directory"):
        await StreamLocation(QUIET, lake, "delta://", spark_url).read()


async def test_a_table_of_something_else_is_refused(spark_url: str, lake: Path) -> None:
    location = StreamLocation(QUIET, lake, f"delta://{lake}/other", spark_url)
    async with location.lake() as reader:
        other = f"{lake}/other"
        await reader.run("make", lambda spark: spark.range(3).write.format("delta").save(other))
    with pytest.raises(StreamError, match="other: the table is no recording"):
        await location.read()


async def given(count: int) -> AsyncIterator[Measurement]:
    for number in range(count):
        yield sent(number)


async def test_a_table_is_written_and_copied_in_portions(spark_url: str, lake: Path) -> None:
    location = StreamLocation(QUIET, lake, f"delta://{lake}/portions", spark_url)
    copied = lake / "copied.jsonl"
    async with asyncio.timeout(DEADLINE_S):
        assert await write_table(location, given(9), BytesPerSecond(7.0), commit_bytes=300) == 9
        with pytest.raises(SettingsError, match=r"portions exists: name another table"):
            await write_table(location, given(1), BytesPerSecond(7.0))
        async with location.lake() as reader:
            await copy_table(reader, location.table or "", copied, portion_bytes=300)
    found = recording.read(copied)
    assert found == recording.Recording(BytesPerSecond(7.0), tuple(map(sent, range(9))))
    assert len(list((lake / "portions" / "_delta_log").glob("*.json"))) == 3  # three in each


async def test_streams_and_recordings_are_converted_through_a_table(
    spark_url: str, lake: Path
) -> None:
    stream, made, again = lake / "stream.json", lake / "made.jsonl", lake / "again.json"
    table, server = f"delta://{lake}/converted", ("--spark", spark_url)
    rows = [{TopicPartition("a", n): PerCent(10 * n + row) for n in range(3)} for row in range(5)]
    streams.write(stream, rows)
    async with asyncio.timeout(DEADLINE_S):
        code, out = await command("convert", str(stream), table, "--capacity", "4e6", *server)
        assert (code, "5 measurements" in out) == (0, True), out
        code, out = await command("convert", table, str(made), *server)
        assert (code, recording.read(made).capacity) == (0, 4e6), out
        code, out = await command("convert", table, str(again), *server)
        assert (code, stream_file.read(again)) == (0, rows), out
        (lake / "bad.json").write_text('[{"a": {"0": 1}}, {"a": {"0": -1}}]')
        bad = (str(lake / "bad.json"), f"delta://{lake}/bad", "--capacity", "1")
        code, out = await command("convert", *bad, *server)
        assert (code, "row 1, topic 'a', partition 0" in out) == (2, True), out
        assert not (lake / "bad").exists()
        code, out = await command("convert", str(made), table, *server)
        assert (code, "exists: name another table" in out) == (2, True), out


async def command(*arguments: str) -> tuple[int, str]:
    code, out, errors = await binwright(*arguments)
    return code, out + errors


async def test_the_commands_do_the_same(broker: str, tmp_path: Path) -> None:
    file = str(tmp_path / "recorded.jsonl")
    servers = ("--bootstrap-servers", broker)
    async with asyncio.timeout(DEADLINE_S):
        await publish(at(broker, "binwright.metrics"), 3)
        code, out = await command(
            "record", "--to", file, "--from-beginning", "--seconds", "1.5", *servers
        )
        assert (code, "recorded" in out) == (0, True), out
        assert len(recording.read(Path(file)).measurements) >= 3  # and what others said there
        code, out = await command("lab", "packing", "--stream", file, "--algorithms", "mwf,sticky")
        assert (code, "mwf" in out, "sticky" in out) == (0, True, True), out
        code, out = await command("replay", file, "--flat-out", *servers)
        assert (code, "published" in out) == (0, True), out
        code, out = await command("top", "--json", "--filter", "orders", *servers)
        assert code == 0, out
        (row,) = json.loads(out)
        assert (row["name"], row["rate"], row["quality"]) == ("orders-0", 2000.0, "measured")
        code, out = await command("replay", str(tmp_path / "nowhere"), *servers)
        assert (code, "nowhere" in out) == (2, True), out
