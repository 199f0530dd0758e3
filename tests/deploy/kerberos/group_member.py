"""A member of a consumer group, with the connection that its variables say: TOPIC GROUP.

It prints the first record that it reads, and commits it.
"""

import asyncio
import sys

from aiokafka import AIOKafkaConsumer

from binwright.kafka.client import client_options
from binwright.runtime.settings.group import load_settings

DEADLINE_S = 30.0


async def read(topic: str, group: str) -> str:
    options = client_options(load_settings().kafka)
    consumer = AIOKafkaConsumer(topic, **options, group_id=group, auto_offset_reset="earliest")
    try:
        async with asyncio.timeout(DEADLINE_S):
            await consumer.start()
            record = await consumer.getone()
            await consumer.commit()
    finally:
        await consumer.stop()
    return str(record.value.decode())


if __name__ == "__main__":
    sys.stdout.write(asyncio.run(read(*sys.argv[1:])))
