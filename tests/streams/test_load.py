"""The parts of a load that need no broker: pacing, records, options."""

import json
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from binwright.protocol.errors import BrokerUnavailable, SettingsError, StreamError
from binwright.protocol.model import TopicPartition
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.streams.load import MIN_RECORD_BYTES, SampleRecords, kafka_options, run_load
from binwright.streams.load_pacing import BURST_S, Pacer, Pacing
from binwright.streams.streams import PerCent

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)
STREAM = [{A: PerCent(10), B: PerCent(50)}, {A: PerCent(20)}]
LOAD = Pacing(row_s=2, bytes_per_per_cent=1_000, record_bytes=1_000)  # 10 % is 10 records/s


def sent_at(pacer: Pacer, *times: float) -> Counter[TopicPartition]:
    """Send what is due at each of `times`; return how many records of each partition."""
    sent = Counter[TopicPartition]()
    for now in times:
        pacer.advance(now)
        for partition, records in pacer.due().items():
            pacer.mark_sent(partition, records)
            sent[partition] += records
    return sent


def ticks(until: float, tick: float = 1 / 32) -> list[float]:
    """Return times that floats represent exactly, so that their sums are exact."""
    return [tick * number for number in range(1, round(until / tick) + 1)]


# --- pacing ------------------------------------------------------------------------------------


def test_a_row_gives_its_rate_times_its_length() -> None:
    assert sent_at(Pacer(STREAM, LOAD), *ticks(2)) == {A: 20, B: 100}


def test_records_are_spread_evenly() -> None:
    """At fifty records a second a tick has at most two."""
    pacer = Pacer(STREAM, LOAD)
    each = [sent_at(pacer, now)[B] for now in ticks(2)]

    assert max(each) == 2
    assert abs(sum(each[:32]) - sum(each[32:])) <= 1


def test_the_next_row_takes_over_on_time() -> None:
    pacer = Pacer(STREAM, LOAD)
    first = sent_at(pacer, *ticks(2))
    second = sent_at(pacer, *(2 + now for now in ticks(2)))

    assert first == {A: 20, B: 100}
    assert second == {A: 40}
    assert pacer.row == 1


def test_what_is_due_is_known_also_where_it_is_not_sent() -> None:
    pacer = Pacer(STREAM, LOAD)
    sent_at(pacer, *ticks(1))
    pacer.advance(3.9)

    assert pacer.due_bytes == pytest.approx({A: 20_000 + 38_000, B: 100_000})
    assert pacer.shed_bytes > 0


def test_a_tick_across_two_rows_counts_a_part_of_each() -> None:
    """Half a second of the first row, half a second of the second."""
    pacer = Pacer(STREAM, LOAD)
    sent_at(pacer, *ticks(1.5))

    assert sent_at(pacer, 2.5)[A] == 5 + 10


def test_nothing_is_due_after_the_end() -> None:
    pacer = Pacer(STREAM, LOAD)
    assert pacer.ends_s == 4
    sent_at(pacer, *ticks(4))

    assert sent_at(pacer, 5, 50) == {}
    assert pacer.row == 1


def test_a_longer_load_repeats_the_stream() -> None:
    pacer = Pacer(STREAM, Pacing(row_s=2, bytes_per_per_cent=1_000, duration_s=6))
    sent = sent_at(pacer, *ticks(8))

    assert sent == {A: 20 + 40 + 20, B: 100 + 100}
    assert pacer.row == 2
    assert pacer.measurement == STREAM[0]


def test_records_not_sent_stay_due() -> None:
    pacer = Pacer(STREAM, LOAD)
    pacer.advance(0.5)
    pacer.mark_sent(B, 5)
    pacer.advance(0.7)

    assert pacer.due() == {A: 7, B: 30}


def test_after_a_stall_one_second_is_caught_up_and_the_rest_is_shed() -> None:
    """One second at the partition's highest rate; A has not reached its own yet."""
    pacer = Pacer(STREAM, LOAD)
    pacer.advance(1.9)

    assert pacer.due() == {A: 19, B: 50 * BURST_S + 1}
    assert pacer.shed_bytes == pytest.approx(0.9 * 50_000 - 1_000)


def test_a_rate_below_one_record_a_second_still_gives_records() -> None:
    """A bucket holds at least one record, however slowly it fills."""
    pacer = Pacer([{A: PerCent(1)}], Pacing(row_s=100, bytes_per_per_cent=100, record_bytes=1_000))

    assert sent_at(pacer, *ticks(100)) == {A: 10}
    assert pacer.shed_bytes == 0


@given(
    st.lists(
        st.dictionaries(st.sampled_from([A, B]), st.integers(0, 130).map(PerCent)), min_size=1
    ),
    st.lists(st.floats(0.001, 0.9), min_size=1, max_size=40),
)
def test_no_byte_is_lost_or_added_at_any_ticks(
    stream: list[dict[TopicPartition, PerCent]], pauses: list[float]
) -> None:
    pacer = Pacer(stream, Pacing(row_s=0.7, bytes_per_per_cent=100, record_bytes=500))
    now, sent = 0.0, Counter[TopicPartition]()
    for pause in pauses:
        now += pause
        sent += sent_at(pacer, now)

    for partition in (A, B):
        planned = sum(
            row.get(partition, 0) * 100 * max(0.0, min(now - number * 0.7, 0.7))
            for number, row in enumerate(stream)
        )
        assert planned - 500 - 1e-6 <= sent[partition] * 500 <= planned + 1e-6
    assert pacer.shed_bytes == 0


@pytest.mark.parametrize("name", ["row_s", "bytes_per_per_cent", "record_bytes", "duration_s"])
@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf")])
def test_numbers_that_are_not_finite_and_positive_are_refused(name: str, value: float) -> None:
    numbers: dict[str, Any] = {"row_s": 1, "bytes_per_per_cent": 1, name: value}

    with pytest.raises(StreamError, match=f"{name} must be finite and > 0"):
        Pacing(**numbers)


# --- records -----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [MIN_RECORD_BYTES, 1_000, 70_000])
def test_records_have_the_size_asked_for(size: int) -> None:
    records = SampleRecords(size)
    made = [records.make(1_700_000_000_000) for _ in range(2_000)]

    assert {len(key) + len(value) for key, value in made} == {size}


def test_values_are_json_with_customer_and_number() -> None:
    records = SampleRecords(1_000)
    made = [records.make(1_700_000_000_123) for _ in range(100)]
    values = [json.loads(value) for _, value in made]

    assert [value["id"] for value in values] == list(range(100))
    assert {value["ts"] for value in values} == {1_700_000_000_123}
    assert all(
        value["customer"].encode() == key for (key, _), value in zip(made, values, strict=True)
    )
    assert len({value["note"] for value in values}) == 100
    assert all(1 <= value["amount"] < 1_000 for value in values)


def test_records_compress_by_little_more_than_half() -> None:
    records = SampleRecords(1_000)
    values = b"".join(records.make(0)[1] for _ in range(2_000))

    assert len(zlib.compress(values)) > 0.4 * len(values)


def test_records_too_small_for_their_fields_are_refused() -> None:
    with pytest.raises(StreamError, match="at least 200, got 199"):
        SampleRecords(199)


def test_the_largest_numbers_fit_the_smallest_record() -> None:
    records = SampleRecords(MIN_RECORD_BYTES)
    records._number = 10**12

    assert sum(map(len, records.make(10**13))) == MIN_RECORD_BYTES


# --- options -----------------------------------------------------------------------------------


def test_plain_settings_become_librdkafkas_options() -> None:
    assert kafka_options(KafkaSettings(bootstrap_servers="a:1,b:2", request_timeout_s=1.5)) == {
        "bootstrap.servers": "a:1,b:2",
        "security.protocol": "PLAINTEXT",
        "socket.timeout.ms": 1500,
    }


def test_secure_settings_become_librdkafkas_options() -> None:
    kafka = KafkaSettings(
        security_protocol="SASL_SSL",
        sasl_mechanism="SCRAM-SHA-512",
        sasl_username="alice",
        sasl_password=SecretStr("secret"),
        ssl_ca_file=Path("/ca.pem"),
        ssl_certificate_file=Path("/cert.pem"),
        ssl_key_file=Path("/key.pem"),
    )

    assert kafka_options(kafka) == {
        "bootstrap.servers": "localhost:9092",
        "security.protocol": "SASL_SSL",
        "socket.timeout.ms": 30_000,
        "ssl.ca.location": "/ca.pem",
        "ssl.certificate.location": "/cert.pem",
        "ssl.key.location": "/key.pem",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "alice",
        "sasl.password": "secret",
    }


def test_a_certificate_s_file_may_hold_its_key(tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("secret\n")
    kafka = KafkaSettings(
        security_protocol="SSL",
        ssl_certificate_file=Path("/both.pem"),
        ssl_key_password_file=password,
    )
    options = kafka_options(kafka)
    assert options["ssl.key.location"] == options["ssl.certificate.location"] == "/both.pem"
    assert options["ssl.key.password"] == "secret"


async def test_an_empty_stream_is_refused() -> None:
    with pytest.raises(StreamError, match="empty"):
        await run_load([], KafkaSettings(), LOAD)


async def test_a_certificate_that_cannot_be_read_is_a_settings_error() -> None:
    kafka = KafkaSettings(security_protocol="SSL", ssl_ca_file=Path("/no/such/ca.pem"))

    with pytest.raises(SettingsError, match=r"kafka\.ssl_ca_file.*/no/such/ca\.pem"):
        await run_load(STREAM, kafka, LOAD)


async def test_an_unreachable_broker_is_reported_in_time(unused_tcp_port: int) -> None:
    kafka = KafkaSettings(bootstrap_servers=f"127.0.0.1:{unused_tcp_port}", request_timeout_s=0.5)

    with pytest.raises(BrokerUnavailable, match=f"used: 127.0.0.1:{unused_tcp_port}: "):
        await run_load(STREAM, kafka, LOAD)
