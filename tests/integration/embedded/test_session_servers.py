"""The servers that all integration tests share do what they are for."""

import asyncio
from pathlib import Path

import pyarrow as pa
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from pyspark.sql import SparkSession

pytestmark = pytest.mark.integration

DEADLINE_S = 60.0


async def test_a_record_goes_through_the_broker(broker: str) -> None:
    topic = "embedded.round-trip"
    async with asyncio.timeout(DEADLINE_S):
        admin = AIOKafkaAdminClient(bootstrap_servers=broker)
        await admin.start()
        try:
            await admin.create_topics([NewTopic(topic, 2, 1)])
        finally:
            await admin.close()
        async with AIOKafkaProducer(bootstrap_servers=broker) as producer:
            await producer.send_and_wait(topic, b"value", partition=1)
        async with AIOKafkaConsumer(
            topic, bootstrap_servers=broker, group_id="g", auto_offset_reset="earliest"
        ) as consumer:
            record = await consumer.getone()
    assert (record.partition, record.value) == (1, b"value")


def test_a_delta_table_is_written_and_read_through_connect(spark_url: str, lake: Path) -> None:
    table = str(lake / "t")
    spark = SparkSession.builder.remote(spark_url).create()
    try:
        for version in (0, 1, 1):  # the last is skipped: same writer, same version
            (
                spark.createDataFrame(pa.table({"a": [1, 2, 3]}))
                .coalesce(1)
                .write.format("delta")
                .mode("append")
                .option("txnAppId", "w")
                .option("txnVersion", version)
                .save(table)
            )
        assert spark.read.format("delta").load(table).count() == 6
    finally:
        spark.stop()
