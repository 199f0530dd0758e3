"""Groups of the settings, as processes."""

import os
import sys
from pathlib import Path

import psutil
import pytest
from tests.scaler.fakes import FakeKafka
from tests.waiting import until

from binwright.protocol.errors import SettingsError
from binwright.runtime.run import background_tasks, must_not_end
from binwright.runtime.settings.loading import load as load_program
from binwright.scaler.decide.assigning import Replica
from binwright.scaler.decide.members import GroupMember
from binwright.scaler.local import FleetWorkload, local_targets, process_fleet
from binwright.scaler.passes import Scaler
from binwright.scaler.settings import ScalerProgramSettings

PATIENCE_S = 30.0
MANY = [40.0] * 6  # for three replicas of 100/s


def settings_of(**group: object) -> ScalerProgramSettings:
    chosen = {"group": "orders", "records_per_s": 100, "cooldown_up_s": 0, "cooldown_down_s": 0}
    return load_program(ScalerProgramSettings, scaler={"groups": [{**chosen, **group}]})


def kafka() -> FakeKafka:
    return FakeKafka(rates={"orders": MANY})


async def test_processes_are_started_and_ended_as_the_load_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of the scaler")
    monkeypatch.setenv("SHOP_REGION", "eu")
    mark = f"worker of test {os.getpid()} {{replica}}"
    command = [sys.executable, "-c", "import time; time.sleep(600)", mark]
    chosen = settings_of(
        command=command,
        environment=["COLOR=red"],
        logs=tmp_path,
        grace_s=2,
        pass_on=["SHOP_REGION"],
    )

    def running() -> set[str]:
        found = (p.info["cmdline"] or [""] for p in psutil.process_iter(["cmdline", "status"]))
        return {line[-1][-1] for line in found if line[-1].startswith(mark[:-10])}

    load = kafka()
    local = local_targets(chosen)
    scaler = Scaler(lambda: local.targets, load, load, 0.5, 0.2)
    try:
        async with background_tasks(must_not_end(local.run()), must_not_end(scaler.run())):
            await until(lambda: running() == {"0", "1", "2"})
            (child,) = (p for p in psutil.process_iter(["cmdline"]) if _is(p, mark, 0))
            seen = child.environ()
            assert (seen["COLOR"], seen["SHOP_REGION"], seen["PATH"]) == (
                "red",
                "eu",
                os.environ["PATH"],
            )
            assert "of the scaler" not in seen.values(), "its code is another's"
            load.rates["orders"] = [1.0] * 6
            await until(lambda: running() == {"0"})
        # Another scaler finds the one that runs, and keeps it.
        async with background_tasks(must_not_end(local.run())):
            (target,) = local.targets.values()
            (workload,) = local.workloads
            assert target.workload is workload
            await until(lambda: workload.status() is not None)
            seen = workload.status()
            assert seen is not None
            assert seen.replicas == 1
    finally:
        for process in psutil.process_iter(["cmdline"]):
            if any(_is(process, mark, number) for number in range(9)):
                process.kill()


def _is(process: psutil.Process, mark: str, number: int) -> bool:
    line: list[str] = process.info["cmdline"] or [""]
    return line[-1] == mark.replace("{replica}", str(number))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"command": ["worker"]}, "needs a command with {replica}"),
        ({"assigns": True, "mode": "approve"}, "without a command somebody else sets it"),
        ({"command": ["{replica}"], "min_replicas": 3, "max_replicas": 2}, "0 <= min <= max"),
        ({"command": ["{replica}"], "schedules": [{"start": "25:00"}]}, "expected a time of day"),
        ({"command": ["{replica}"], "schedules": [{"time_zone": "Mars"}]}, "no such time zone"),
    ],
)
def test_settings_that_do_not_hold_are_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        settings_of(**wrong)


def test_a_group_that_is_assigned_needs_no_command_if_others_run_it() -> None:
    local = local_targets(settings_of(assigns=True))
    (target,) = local.targets.values()
    assert (target.workload, local.workloads) == (None, [])


async def test_members_are_known_by_the_number_at_the_end_of_their_names() -> None:
    fleet = process_fleet(settings_of(command=["none", "{replica}"]).scaler.groups[0])
    workload = FleetWorkload("orders", fleet, _wanted=3)
    names = {
        "a": GroupMember(topics=frozenset(), client="worker-0"),
        "b": GroupMember(topics=frozenset(), client="worker", instance="pod-1"),
        "c": GroupMember(topics=frozenset(), client="worker-2"),
        "d": GroupMember(topics=frozenset(), client="other-2"),  # nobody knows which of the two
        "e": GroupMember(topics=frozenset(), client="worker-3"),  # there is no such replica
        "f": GroupMember(topics=frozenset(), client="worker"),
    }
    assert await workload.replicas_of(names) == {"a": Replica("0", 0), "b": Replica("1", 1)}
