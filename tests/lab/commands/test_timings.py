"""What `lab timings` prints and writes, and the options that do not go together."""

import pytest
from typer.testing import CliRunner

from binwright.cli.main import app
from binwright.cli.terminal import Console
from binwright.lab.commands.timings import show
from binwright.lab.timings.capacity import StagedBytes, capacity
from binwright.lab.timings.events import ConsumerStart, PlanTrigger
from binwright.lab.timings.outcome import TimedParts
from binwright.protocol.errors import BinwrightError
from binwright.protocol.model import Slot

READ = capacity("test 1", 32, [StagedBytes(n * 0.1, "a", 10**6) for n in range(80)])
FOUND = TimedParts(
    triggers=[PlanTrigger(at_s=20.0, seconds=0.4)],
    starts=[ConsumerStart(at_s=21.0, slot=Slot(1), seconds=0.9, process_s=0.2)],
    capacities=[READ] if READ else [],
)
ERRORS = Console(stderr=True)


def test_tables_hold_ours_and_the_papers(capsys: pytest.CaptureFixture[str]) -> None:
    show(FOUND, "A machine.", ERRORS, None, json_=False)
    printed = capsys.readouterr().out
    line = next(line for line in printed.splitlines() if "measurement to plan" in line)
    assert line.split()[-5:] == ["1", "0.40", "0.40", "0.40", "0.40"]
    assert "Δt2, measurement to plan: p50" in printed
    assert "test 1" in printed
    assert "A machine." in printed
    assert "…" not in printed


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--since", "2026-11-23T04:00:00"), "go with --running"),
        (("--packing", "unheard-of"), "unheard-of"),
        (
            ("--running", "--since", "2026-11-23T05:00:00", "--until", "2026-11-23T04:00:00"),
            "--since must be before --until",
        ),
    ],
)
def test_a_fault_of_the_options_is_named(options: tuple[str, ...], reason: str) -> None:
    done = CliRunner().invoke(app, ["lab", "timings", *options])
    assert isinstance(done.exception, BinwrightError)
    assert reason in str(done.exception)
