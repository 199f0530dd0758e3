"""What a small team writes by hand: confluent-kafka and delta-rs, at least once.

SERVERS TOPIC GROUP TABLE EVERY_S COLUMNS, the last as Arrow's types in JSON: name -> type.
"""

import json
import signal
import sys
import time

import orjson
import pyarrow as pa
from confluent_kafka import Consumer, TopicPartition
from deltalake import write_deltalake

servers, topic, group, table, every_s, columns = sys.argv[1:]
types = {"_partition": "int32", "_offset": "int64", "_timestamp": "int64", **json.loads(columns)}
schema = pa.schema([(name, pa.type_for_alias(alias)) for name, alias in types.items()])
consumer = Consumer(
    {
        "bootstrap.servers": servers,
        "group.id": group,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
    }
)


def land() -> None:
    """Land until the process is asked to end."""
    rows, ends, landed_at = [], {}, time.monotonic()
    while True:
        for message in consumer.consume(10_000, 0.2):
            if message.error():
                continue
            place = (message.partition(), message.offset(), message.timestamp()[1])
            keys = ("_partition", "_offset", "_timestamp")
            rows.append(orjson.loads(message.value()) | dict(zip(keys, place, strict=True)))
            ends[message.partition()] = message.offset() + 1
        if rows and time.monotonic() - landed_at >= float(every_s):
            write_deltalake(table, pa.Table.from_pylist(rows, schema), mode="append")
            offsets = [TopicPartition(topic, partition, end) for partition, end in ends.items()]
            consumer.commit(offsets=offsets, asynchronous=False)
            rows, ends, landed_at = [], {}, time.monotonic()


signal.signal(signal.SIGTERM, lambda *_: sys.exit())
consumer.subscribe([topic])
try:
    land()
finally:
    consumer.close()
