"""`binwright calibrate` on its own broker and Spark: what a consumer reads of a backlog."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]


@pytest.mark.nightly
def test_a_consumer_reads_a_backlog_and_is_alone_with_it(tmp_path: Path) -> None:
    """A backlog of seconds is too short for the consumer's own estimate."""
    done = subprocess.run(
        (
            *(sys.executable, "-m", "binwright.cli", "calibrate", "--json"),
            *("--conditions", "1", "--gigabytes", "0.3", "--keep", str(tmp_path / "kept")),
        ),
        capture_output=True,
        text=True,
        timeout=360,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    (found,) = json.loads(done.stdout)
    assert found["condition"] == "test 1"
    assert found["read, MB/s"] > 2.4
    assert found["of the paper's"] == pytest.approx(found["read, MB/s"] / 2.4, abs=0.1)
    assert found["measured by itself, MB/s"] is None
