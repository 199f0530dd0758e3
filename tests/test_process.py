"""A consumer's process, named by its Hello."""

import pytest

from binwright.protocol.ports.fleet import Process


@pytest.mark.parametrize(
    ("name", "host"),
    [("orders-consumer-0-x2x4z/1/ab12cd34", "orders-consumer-0-x2x4z"), ("strange", "strange")],
)
def test_a_process_name_begins_with_its_host(name: str, host: str) -> None:
    assert Process(name).host == host
