"""One partition at three times the limit, staged by several real consumers; two are killed."""

from pathlib import Path

import pytest
from bench.paced_group import paced
from bench.split import PACE, measure, side_of

from binwright.local.stack import Servers

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

SECONDS = 60.0  # of load: a helper is killed after a third, the owner after two


@pytest.mark.nightly
async def test_a_split_partition_lands_once_though_a_helper_and_its_owner_are_killed(
    broker: str, spark_url: str, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in paced(PACE).items():
        monkeypatch.setenv(name, value)
    logs = lake.parent / "split"
    logs.mkdir()
    side = side_of("split", Servers(broker, spark_url, 0.0), logs, split=True)
    found = await measure(side, logs, SECONDS, kills=True)
    assert found["audit_clean"], found
    assert found["deaths"] >= 2, found
    assert found["staging"] > 1, found
