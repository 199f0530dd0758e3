"""Rates of partitions, now and hour by hour: from the metrics topic, or from a recording."""

import asyncio
from collections.abc import Iterable, Iterator
from pathlib import Path

from binwright.balancer.decide.rate_history import HOUR_S, WEEK_HOURS, RateHistory
from binwright.kafka.control_records import METRICS_PARTITION, Decoder
from binwright.look.follower import read_recent_measurements
from binwright.protocol.errors import BrokerUnavailable, StreamError
from binwright.protocol.metrics import Measurement, decode_measurement
from binwright.protocol.model import BytesPerSecond, Rates, TopicPartition
from binwright.protocol.monitors import Monitors, accept_measurement
from binwright.protocol.ports.kafka import ControlTopics, Reader
from binwright.streams.recording import RecordingReader, rows

FRESH_S = 600
"""Age of a measurement that still counts as the rate of now."""
RECENT = 2_000
READ_S, PASS_S = 0.5, 10.0
PASS_INTERVALS = 2
"""Wherever a reader begins, all topics are published once within two intervals of a monitor."""
MINUTE_S = 60.0


async def published_rates(
    bus: ControlTopics, topic: str, now_ms: int
) -> dict[TopicPartition, BytesPerSecond]:
    """Return the last rates on the metrics topic, of the last `FRESH_S`; none without a monitor.

    Raises:
        BrokerUnavailable: Kafka does not answer.
    """
    if not await bus.partitions(topic):
        return {}
    reader, end = await read_recent_measurements(bus, topic, RECENT)
    decoder = Decoder(decode_measurement)
    measurements: list[Measurement] = []
    try:
        while reader.position < end:
            measurements += [each for _, each in decoder.decode(await reader.read(READ_S))]
    finally:
        await reader.close()
    oldest_ms = now_ms - 1000 * FRESH_S
    return latest_rates(each for each in measurements if each.at_ms >= oldest_ms)


async def published_history(bus: ControlTopics, topic: str, now_ms: int) -> RateHistory:
    """Return the rates at the beginning of each hour of the last week, as far as it is kept.

    Of each hour one pass of the monitors is read: a week of a large cluster has a hundred million
    records.

    Raises:
        BrokerUnavailable: Kafka does not answer.
    """
    history = RateHistory(hours=WEEK_HOURS)
    if not await bus.partitions(topic):
        return history
    begins = [now_ms - round(1000 * HOUR_S * hour) for hour in range(WEEK_HOURS, 0, -1)]
    first = await asyncio.gather(*(bus.offset_at(topic, METRICS_PARTITION, ms) for ms in begins))
    ends = [*first[1:], await bus.end(topic, METRICS_PARTITION)]
    reader = await bus.reader(topic, METRICS_PARTITION, first[0])
    try:
        for offset, end in zip(first, ends, strict=True):
            history.append(await _pass_rates(reader, offset, end) if offset < end else {})
    finally:
        await reader.close()
    return history


async def _pass_rates(reader: Reader, offset: int, end: int) -> Rates:
    """Return the rates of the pass that begins at an offset."""
    reader.seek(offset)
    decoder = Decoder(decode_measurement)
    measurements: list[Measurement] = []
    try:
        async with asyncio.timeout(PASS_S):
            while reader.position < end:
                measurements += [each for _, each in decoder.decode(await reader.read(READ_S))]
                if measurements and measurements[-1].at_ms > _pass_end_ms(measurements[0]):
                    break
    except TimeoutError as exc:
        raise BrokerUnavailable(
            f"read the metrics topic at offset {offset}: not done within {PASS_S:g} s"
        ) from exc
    return latest_rates(
        each for each in measurements if each.at_ms <= _pass_end_ms(measurements[0])
    )


def _pass_end_ms(first: Measurement) -> float:
    return first.at_ms + 1000 * PASS_INTERVALS * first.interval_s


def latest_rates(measurements: Iterable[Measurement]) -> dict[TopicPartition, BytesPerSecond]:
    """Return the last known rate of each partition; of two monitors one is followed."""
    rates: dict[TopicPartition, BytesPerSecond] = {}
    monitors = Monitors()
    for measurement in measurements:
        monitors, counts, _ = accept_measurement(monitors, measurement.at_ms / 1000, measurement)
        if counts:
            rates |= measurement.rates()
    return rates


def recorded_history(path: Path) -> RateHistory:
    """Return the mean rates of each hour of a recording; raise `StreamError` if there are none."""
    try:
        with path.open("rb") as file:
            history = RateHistory(_hourly_means(rows(RecordingReader(file), MINUTE_S)))
    except (OSError, StreamError) as exc:
        raise StreamError(f"{path}: {exc}") from exc
    if not any(history.topics()):
        raise StreamError(f"{path}: no rate in it")
    return history


def _hourly_means(minutes: Iterable[Rates]) -> Iterator[Rates]:
    """Yield the mean of each partition over each hour, the last one as far as it goes."""
    sums: dict[TopicPartition, tuple[float, int]] = {}
    for number, row in enumerate(minutes, 1):
        for partition, rate in row.items():
            total, count = sums.get(partition, (0.0, 0))
            sums[partition] = total + rate, count + 1
        if number % round(HOUR_S / MINUTE_S) == 0:
            yield _means(sums)
            sums = {}
    if sums:
        yield _means(sums)


def _means(sums: dict[TopicPartition, tuple[float, int]]) -> Rates:
    return {p: BytesPerSecond(total / count) for p, (total, count) in sums.items()}
