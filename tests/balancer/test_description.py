"""The file in which a person describes brokers and topics."""

from pathlib import Path

import pytest

from binwright.balancer.description import BrokerCapacity, ClusterDescription, read
from binwright.protocol.errors import SettingsError

TEXT = """
headroom = 0.3
[capacity]
disk_bytes = 2e12
[brokers.3]
network_in_bytes_per_s = 1e8
[topics.orders]
readers = 2
[pinned]
"orders-0" = [1]
"""


def test_a_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "cluster.toml"
    file.write_text(TEXT)
    found = read(file)
    assert (found.headroom, found.topic("orders").readers, found.pinned["orders-0"]) == (
        0.3,
        2.0,
        (1,),
    )
    assert found.of_broker(3) == BrokerCapacity(disk_bytes=2e12, network_in_bytes_per_s=1e8)


def test_without_a_file_nothing_is_described() -> None:
    assert read(None) == ClusterDescription()
    assert read(None).topic("orders").readers == 1


@pytest.mark.parametrize(
    ("text", "fault"),
    [("headroom = 1", "headroom"), ("x = 1", "x: Extra"), ("[", "cluster.toml")],
)
def test_faults_are_named(tmp_path: Path, text: str, fault: str) -> None:
    file = tmp_path / "cluster.toml"
    file.write_text(text)
    with pytest.raises(SettingsError, match=fault):
        read(file)
