"""Replay a recording to controllers: its measurements, published again as one monitor."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from uuid import uuid4

from binwright.kafka.control_records import METRICS_CONFIG, METRICS_PARTITION
from binwright.kafka.publishing import publish_message
from binwright.protocol.measurements import Measurement
from binwright.protocol.monitors import Monitors, accept_measurement
from binwright.protocol.ports.kafka import ControlTopics
from binwright.runtime.clock import wall_ms


async def replay(
    bus: ControlTopics,
    topic: str,
    measurements: Iterable[Measurement],
    speed: float,
    progress: Callable[[Measurement], None],
) -> int:
    """Publish a recording's measurements to a metrics topic; return how many.

    Of two recorded monitors one is followed, as by a controller. Measurements are published under
    the name of a new monitor, with the present time.

    Args:
        bus: Of the Kafka to publish to.
        topic: Created if it does not exist.
        measurements: In the order in which they were published first.
        speed: Seconds of the recording in one second; infinite: no waiting at all.
        progress: Called with each measurement once it is published.

    Raises:
        BrokerUnavailable: Kafka does not answer.
    """
    await bus.ensure(topic, 1, METRICS_CONFIG)
    loop = asyncio.get_running_loop()
    name, monitors, count = f"replay-{uuid4()}", Monitors(), 0
    begin, first_s = loop.time(), None
    for recorded in measurements:
        at_s = recorded.at_ms / 1000
        first_s = at_s if first_s is None else first_s
        monitors, counts, _ = accept_measurement(monitors, at_s, recorded)
        if not counts:
            continue
        await _sleep_until(loop, begin + (at_s - first_s) / speed)
        measurement = replace(
            recorded,
            at_ms=wall_ms(),
            monitor=name,
            number=count,
            interval_s=recorded.interval_s / speed,
        )
        await publish_message(bus, topic, METRICS_PARTITION, measurement)
        progress(measurement)
        count += 1
    return count


async def _sleep_until(loop: asyncio.AbstractEventLoop, due: float) -> None:
    if due > loop.time():
        await asyncio.sleep(due - loop.time())
