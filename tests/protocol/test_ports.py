"""The fakes implement the ports: what is tested on them is called as the adapters are."""

import inspect
from typing import Any

import pytest

from binwright.protocol.ports.fleet import Fleet, Process
from binwright.protocol.ports.kafka import ControlTopics, DataReader, LogSampler, Reader
from binwright.tables.ports import Lake, Staging
from binwright.testing.control_topics import FakeControlTopics, FakeReader
from binwright.testing.data_topics import FakeDataReader, FakeTopics
from binwright.testing.fleet import FakeFleet
from binwright.testing.lake import FakeLake
from binwright.testing.log_sampler import FakeLogSampler
from binwright.testing.staging import FakeStaging


@pytest.mark.parametrize(
    ("port", "fake"),
    [
        (ControlTopics, FakeControlTopics),
        (Reader, FakeReader),
        (Fleet, FakeFleet),
        (DataReader, FakeDataReader),
        (LogSampler, FakeLogSampler),
        (LogSampler, FakeTopics),
        (Lake, FakeLake),
        (Staging, FakeStaging),
    ],
)
def test_a_fake_has_every_method_of_its_port_with_the_same_parameters(
    port: type[Any], fake: type[Any]
) -> None:
    methods = {n: m for n, m in vars(port).items() if inspect.isfunction(m) and n[0] != "_"}
    assert methods
    for name, method in methods.items():
        wanted, found = (
            [(p.name, p.kind) for p in inspect.signature(each).parameters.values()]
            for each in (method, getattr(fake, name))
        )
        assert found[: len(wanted)] == wanted, f"{fake.__name__}.{name}"


def test_a_process_names_its_machine() -> None:
    assert Process("binwright-0-ab/7/c0ffee").host == "binwright-0-ab"
