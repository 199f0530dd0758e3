"""What is replayed is read before anything is published."""

from pathlib import Path

import pytest
from rich.console import Console

from binwright.protocol.errors import BrokerUnavailable, StreamError
from binwright.protocol.model import BytesPerSecond
from binwright.recordings.commands.replay import Replayer
from binwright.recordings.location import StreamLocation
from binwright.recordings.recording import header_line
from binwright.runtime.settings import Settings

AWAY = Settings.model_validate({"kafka": {"bootstrap_servers": "127.0.0.1:9"}})  # nothing listens


def replayer(file: Path, tmp_path: Path) -> Replayer:
    return Replayer(StreamLocation(Console(quiet=True), tmp_path, str(file)), AWAY, 1.0)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (b'[{"a": {"0": 1}}, {"a": {"0": -1}}]', "row 1, topic 'a', partition 0"),
        (header_line(BytesPerSecond(1)) + b"3\n", "line 2"),
        (header_line(BytesPerSecond(1)), "the recording holds no measurement"),
    ],
)
async def test_a_fault_is_found_before_kafka_is_needed(
    text: bytes, fault: str, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.write_bytes(text)
    with pytest.raises(StreamError, match=fault):
        await replayer(file, tmp_path).run()
    file.write_bytes(b'[{"a": {"0": 1}}]')
    with pytest.raises(BrokerUnavailable):
        await replayer(file, tmp_path).run()
