"""A consumer's time is divided into windows, by its CPU time and its waits."""

import os
from functools import partial
from pathlib import Path

import pytest

from binwright.consumer.decide.capacity import CapacityEstimate, Window
from binwright.consumer.read.capacity import CapacityMeter, CpuTime, cpu_time, usable_cpus
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import ReadProgress

MB = 1_000_000
P = TopicPartition("orders", 0)


def progress(number: int) -> ReadProgress:
    """Return the progress of a consumer that reads 10 MB and 10 of 1,000 records a second."""
    return ReadProgress(10 * MB * number, {P: (10 * number, 10_000)})


def test_a_window_holds_the_differences_of_two_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Window] = []
    monkeypatch.setattr(CapacityEstimate, "add", lambda _, window: found.append(window))
    now = 0
    meter = CapacityMeter(lambda: CpuTime(0.5 * now, 0.25 * now), lambda: 2.0)
    for now in (0, 5, 9, 10):
        meter.look(float(now), partial(progress, now), 0.5 * now, 0.375 * now)
    window = Window(
        seconds=5.0,
        bytes=50 * MB,
        loop=0.25,
        process=0.25,
        waited=0.5,
        held=0.375,
        full_speed=True,
    )
    assert found == [window, window]


def test_the_estimate_is_by_windows() -> None:
    now = 0
    meter = CapacityMeter(lambda: CpuTime(0.5 * now, 0.5 * now), lambda: 2.0)
    for now in range(0, 61, 5):
        meter.look(float(now), partial(ReadProgress, 10 * MB * now, {}), 0.0, 0.0)
    found = meter.capacity
    assert found is not None
    assert (float(found.bytes_per_s), found.seconds) == (20.0 * MB, 60.0)


@pytest.mark.parametrize(("every_s", "windows"), [(0.5, 24), (5.0, 24), (20.0, 6)])
def test_windows_are_of_five_seconds_or_of_the_time_between_looks(
    every_s: float, windows: int
) -> None:
    ended = 0
    asked: list[int] = []

    def cpu() -> CpuTime:
        nonlocal ended
        ended += 1
        return CpuTime(0.0, 0.0)

    def reader(number: int) -> ReadProgress:
        asked.append(number)
        return progress(number)

    meter = CapacityMeter(cpu)
    for number in range(round(120 / every_s) + 1):
        meter.look(number * every_s, partial(reader, number), 0.0, 0.0)
    assert ended == windows + 1  # and the first look
    assert len(asked) == windows + 1, "a reader of many partitions is asked at their ends only"


def test_nothing_is_measured_at_first() -> None:
    meter = CapacityMeter()
    meter.look(0.0, partial(progress, 0), 0.0, 0.0)
    assert meter.capacity is None


def test_cpu_time_is_that_of_this_process_and_thread() -> None:
    before = cpu_time()
    while cpu_time().loop - before.loop < 0.01:
        sum(range(1000))
    after = cpu_time()
    assert after.process - before.process >= 0.009


@pytest.mark.parametrize(
    ("text", "cpus"), [("50000 100000", 0.5), ("max 100000", None), ("nonsense", None)]
)
def test_a_containers_quota_limits_the_cpus(tmp_path: Path, text: str, cpus: float | None) -> None:
    (tmp_path / "cpu.max").write_text(text)
    assert usable_cpus(tmp_path) == (cpus or len(os.sched_getaffinity(0)))


def test_without_control_groups_the_cpus_are_those_it_runs_on(tmp_path: Path) -> None:
    assert usable_cpus(tmp_path) == len(os.sched_getaffinity(0))
