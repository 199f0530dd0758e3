"""How a stream is written: its pace, its topics, and under which names."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from binwright.cli.terminal import Console
from binwright.protocol.errors import SettingsError, StreamError
from binwright.protocol.model import BytesPerSecond, TopicPartition
from binwright.runtime.settings.group import Settings
from binwright.streams.commands.loader import LoadTopics, StreamLoad, partition_counts, selected
from binwright.streams.load_pacing import Pacing
from binwright.streams.location import StreamLocation
from binwright.streams.streams import CompactStream, PerCent
from binwright.testing.control_topics import FakeControlTopics

A, B = TopicPartition("a", 0), TopicPartition("b", 3)
STREAM = CompactStream([{A: PerCent(1), B: PerCent(2)}, {A: PerCent(3)}])


def to(partitions: Mapping[str, int], *named: str, grow: bool = False) -> LoadTopics:
    return LoadTopics(partitions=partitions, named=named, grow=grow)


def load(**options: Any) -> StreamLoad:
    location = StreamLocation(Console(quiet=True), Path(), "nowhere")
    settings = Settings.model_validate({"controller": {"limit_bytes_per_s": 1_200_000}})
    return StreamLoad(location=location, settings=settings, **options)


def test_a_stream_is_in_per_cent_of_the_settings_capacity_unless_another_is_given() -> None:
    assert load().pace(30, None) == Pacing(row_s=30, bytes_per_per_cent=10_000)
    assert load(capacity=500.0).pace(30, None).bytes_per_per_cent == 5


def test_a_recording_is_played_at_its_rates() -> None:
    assert load(capacity=500.0).pace(30, BytesPerSecond(7_000)).bytes_per_per_cent == 70


def test_speed_shortens_rows_and_scale_multiplies_rates() -> None:
    found = load(speed=10.0, scale=0.1, minutes=2.0, record_bytes=500).pace(30, None)
    assert found == Pacing(row_s=3, bytes_per_per_cent=1_000, record_bytes=500, duration_s=120)


def test_a_topic_needs_its_highest_partition() -> None:
    assert partition_counts(STREAM.partitions) == {"a": 1, "b": 4}


def test_all_topics_are_written_unless_some_are_named() -> None:
    assert selected(STREAM, (), "") is STREAM
    assert list(selected(STREAM, ("b",), "")) == [{B: PerCent(2)}, {}]


def test_topics_get_other_names() -> None:
    c = TopicPartition("copy.a", 0)
    assert list(selected(STREAM, ("a",), "copy.")) == [{c: PerCent(1)}, {c: PerCent(3)}]


def test_a_topic_that_the_stream_lacks_is_refused() -> None:
    with pytest.raises(StreamError, match="the stream has no topic c; it has a, b"):
        selected(STREAM, ("a", "c"), "")


async def test_missing_topics_are_made_and_named() -> None:
    """Else a name that is mistyped is only seen where its records are missing."""
    bus, reported = FakeControlTopics({"a": 2}), list[str]()
    await to({"a": 1, "b": 4}).prepare(bus, reported.append)
    assert (await bus.partitions("a"), await bus.partitions("b")) == (2, 4)
    assert reported == ["creating 4 partitions in a new topic, b"]


async def test_a_topic_that_holds_records_is_refused_unless_it_is_named() -> None:
    bus = FakeControlTopics({"a": 2})
    await bus.publish("a", 1, b"", b"")
    with pytest.raises(SettingsError, match=r"topic a holds records.*--topics a"):
        await to({"a": 1, "b": 1}).prepare(bus, print)
    assert await bus.partitions("b") == 0  # nothing is made when something is refused
    await to({"a": 1}, "a").prepare(bus, print)


async def test_partitions_of_topics_that_exist_are_not_added() -> None:
    """Keys would go to other partitions from then on."""
    bus = FakeControlTopics({"a": 2})
    with pytest.raises(SettingsError, match="topic a has 2 partitions, the stream has 3"):
        await to({"a": 3}, "a").prepare(bus, print)
    assert await bus.partitions("a") == 2
    reported: list[str] = []
    await to({"a": 3}, "a", grow=True).prepare(bus, reported.append)
    assert await bus.partitions("a") == 3
    assert reported == ["creating 1 partition more in topic a"]
