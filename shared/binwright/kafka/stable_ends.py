"""Where open transactions begin: consumers that read committed records get no further."""

import asyncio
from collections.abc import Collection, Mapping

from binwright.kafka.client import LATEST, ClusterClient
from binwright.kafka.leaders import by_leader
from binwright.protocol.errors import BrokerUnavailable
from binwright.protocol.log_events import LogEvent
from binwright.protocol.model import TopicPartition
from binwright.runtime.logs import log
from binwright.runtime.settings.kafka import KafkaSettings

TRANSACTIONS_UNKNOWN = LogEvent.debug(
    "transactions.unknown", "Where open transactions begin cannot be asked; `explain` names none."
)


async def stable_ends(
    kafka: KafkaSettings, partitions: Collection[TopicPartition]
) -> Mapping[TopicPartition, int]:
    """Return where the first open transaction of each partition begins, or its end without one.

    What is not known is left out: a partition without a leader, or what this user may not describe.
    """
    if not partitions:
        return {}
    try:
        async with ClusterClient(kafka) as cluster:
            leaders = (await cluster.topics({p.topic for p in partitions})).leaders
            known = [(p.topic, p.partition) for p in partitions if p.topic in leaders]
            replies = await asyncio.gather(
                *(
                    cluster.offsets(broker, led, LATEST, stable=True)
                    for broker, led in by_leader(leaders, known).items()
                )
            )
    except BrokerUnavailable as exc:
        log(TRANSACTIONS_UNKNOWN, reason=str(exc))
        return {}
    return {TopicPartition(*p): offset for reply in replies for p, offset in reply.items()}
