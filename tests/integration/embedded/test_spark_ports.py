"""No port of an embedded Spark does anything for somebody without its token or its secret."""

import asyncio
from pathlib import Path

import psutil
import pytest
from tests.integration.embedded.spark_requests import kinds_of, listening
from tests.integration.embedded.test_spark import session

from binwright.local.spark import run_spark

pytestmark = pytest.mark.integration


async def test_ports_of_driver_and_blocks_refuse_clients_without_the_secret(
    tmp_path: Path, lake: Path
) -> None:
    async with run_spark(tmp_path) as server:
        assert server.pid is not None
        process, connect = psutil.Process(server.pid), int(server.address.rpartition(":")[2])
        ports = listening([process, *process.children(recursive=True)])
        assert {*ports.values()} <= {"127.0.0.1", "::ffff:127.0.0.1"}
        assert connect in ports  # it wants the token: test_spark_token.py
        others = ports.keys() - {connect}
        assert await asyncio.to_thread(kinds_of, others) == dict.fromkeys(others, "refuses")
        assert len(others) == 2
        with session(server.url) as spark:
            spark.range(3).write.format("delta").save(str(lake / "t"))
            assert spark.read.format("delta").load(str(lake / "t")).count() == 3
