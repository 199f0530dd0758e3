"""Playing a recording to controllers: the same measurements, said again by a monitor of our own."""

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from uuid import uuid4

from binwright.core.messages import Measurement
from binwright.core.monitors import Monitors, take
from binwright.core.ports import Bus
from binwright.shell.letters import METRICS_CONFIG, METRICS_PARTITION, post


async def replay(
    bus: Bus,
    topic: str,
    measurements: Iterable[Measurement],
    speed: float,
    told: Callable[[Measurement], None],
) -> int:
    """Say a recording's measurements on a metrics topic; return how many.

    Of two monitors that were recorded one is followed, as by a controller. What is said is stamped
    with the time of now.

    Args:
        bus: Where to.
        topic: Made if it is not there.
        measurements: In the order in which they were said.
        speed: How many seconds of the recording pass in one; infinite: no waiting at all.
        told: Called with each, as it is said.

    Raises:
        BrokerUnavailable: Kafka does not answer.
    """
    await bus.ensure(topic, 1, METRICS_CONFIG)
    loop = asyncio.get_running_loop()
    name, monitors, count = f"replay-{uuid4()}", Monitors(), 0
    begin, first_s = loop.time(), None
    for said in measurements:
        at_s = said.at_ms / 1000
        first_s = at_s if first_s is None else first_s
        monitors, counts, _ = take(monitors, at_s, said)
        if not counts:
            continue
        await _until(loop, begin + (at_s - first_s) / speed)
        again = replace(
            said,
            at_ms=time.time_ns() // 1_000_000,
            monitor=name,
            number=count,
            interval_s=said.interval_s / speed,
        )
        await post(bus, topic, METRICS_PARTITION, again)
        told(again)
        count += 1
    return count


async def _until(loop: asyncio.AbstractEventLoop, due: float) -> None:
    if due > loop.time():
        await asyncio.sleep(due - loop.time())
