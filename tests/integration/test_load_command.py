"""`binwright load`, on a real broker."""

import re
import subprocess
import sys

import pytest

from binwright.kafka.control_topics import KafkaControlTopics
from binwright.runtime.settings.kafka import KafkaSettings

pytestmark = pytest.mark.integration

LOAD = (sys.executable, "-m", "binwright.cli", "load")


async def test_topics_are_made_and_written(broker: str) -> None:
    done = subprocess.run(  # noqa: ASYNC221 - nothing else happens meanwhile
        (*LOAD, "--topics", "made", "--minutes", "0.1", "--bootstrap-servers", broker),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "records in" in done.stdout
    assert re.search(r"\] 5 of 6 s: [\d,]+ records, [\d.]+ MB, [\d.]+ kB/s\n", done.stdout)
    async with KafkaControlTopics(KafkaSettings(bootstrap_servers=broker)) as bus:
        assert await bus.partitions("made") == 4
        assert sum([await bus.end("made", number) for number in range(4)]) > 0


def test_without_topics_it_is_an_error() -> None:
    done = subprocess.run(LOAD, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, "no topics" in done.stderr) == (2, True)
