"""Which records are bombs, and what counts as wrong of them in the tables."""

from pathlib import Path

import pyarrow as pa
import pytest
from tests.chaos.bombed_topics import (
    AVRO,
    BOOLEAN,
    COLUMNS,
    JSON,
    NULLS,
    VARIANT,
    BombedTopics,
    bomb_faults,
    bursts,
    of_items,
)
from tests.chaos.landed_values import Place
from tests.chaos.pod_memory import POD_BYTES
from tests.chaos.system_settings import SystemShape, chaos_settings
from tests.consumer.decode import avro

from binwright.consumer.decide.memory import memory_shares
from binwright.consumer.decode.avro_values import AvroDecoder
from binwright.consumer.decode.json_values import JsonDecoder
from binwright.consumer.decode.variant_values import VariantDecoder
from binwright.protocol.model import TopicPartition
from binwright.tables.columns import parse_columns
from binwright.tables.ports import ValueDecoder

BOOLEANS, OF_NULLS = 6, 7  # ids of schemas
TOPICS = BombedTopics("http://127.0.0.1:1", BOOLEANS, OF_NULLS)


def decoder(topic: str) -> ValueDecoder:
    most = memory_shares(POD_BYTES).values
    if topic == JSON:
        return JsonDecoder(parse_columns(COLUMNS), most_bytes=most)
    if topic == VARIANT:
        return VariantDecoder(parse_columns("v VARIANT"), most)
    each = {BOOLEANS: avro.parsed(of_items(BOOLEAN)), OF_NULLS: avro.parsed(of_items(NULLS))}
    return AvroDecoder(each[BOOLEANS].columns, each, most)


def kinds(topic: str, value: bytes) -> list[str | None]:
    one = pa.array([value], pa.binary())
    _, bad = decoder(topic).decode(one, one)
    return [each and each["kind"] for each in bad.to_pylist()]


@pytest.mark.parametrize("number", range(6))
def test_a_bomb_is_too_large_for_a_pod_and_what_fits_is_a_row(number: int) -> None:
    burst = bursts(BOOLEANS, OF_NULLS)[number]
    assert kinds(burst.topic, burst.value) == ["too_large" if burst.bomb else None]


def test_what_fits_does_not_fit_all_at_a_time() -> None:
    [burst] = [each for each in bursts(BOOLEANS, OF_NULLS) if not each.bomb]
    need = decoder(JSON).memory(*[pa.array([burst.value], pa.binary())] * 2)
    assert need * burst.records > memory_shares(POD_BYTES).values


@pytest.mark.parametrize("topic", [JSON, VARIANT, AVRO])
def test_plain_records_are_rows(topic: str) -> None:
    _, value = TOPICS.record(TopicPartition(topic, 0), 7)
    assert kinds(topic, value) == [None]


def test_the_tables_have_decoders_and_the_first_topic_is_raw(tmp_path: Path) -> None:
    settings = chaos_settings(tmp_path, SystemShape(bombs=True), "k:9092", {}, TOPICS)
    raw = [topic for topic in settings.topics if settings.targets(topic)[0].decoded is None]
    assert raw == ["orders"]
    assert {*settings.topics} == {"orders", JSON, VARIANT, AVRO}


@pytest.mark.parametrize(
    ("bad", "faults"),
    [
        ([((0, 4), "too_large"), ((1, 2), "too_large")], 0),
        ([((0, 4), "too_large")], 1),
        ([((0, 4), "too_large"), ((1, 2), "too_large"), ((1, 2), "too_large")], 1),
        ([((0, 4), "too_large"), ((1, 2), "malformed")], 1),
        ([((0, 4), "too_large"), ((1, 2), "too_large"), ((1, 3), "too_large")], 1),
    ],
)
def test_each_bomb_is_a_bad_record_once_and_no_other_is(
    bad: list[tuple[Place, str]], faults: int
) -> None:
    assert len([*bomb_faults({(0, 4), (1, 2)}, bad)]) == faults
