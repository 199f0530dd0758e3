"""Spark learns on a throw-away table of which nothing is left."""

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from binwright.consumer.warm_up import warm_up
from binwright.protocol.errors import ExternalError
from binwright.runtime.settings import load_settings

pytestmark = pytest.mark.integration


def left(staging: str) -> list[Path]:
    return list(Path(staging).iterdir())


async def test_a_warm_up_commits_and_leaves_nothing(lake: Path, spark_url: str) -> None:
    settings = load_settings(lake={"path": str(lake), "spark": spark_url})
    with capture_logs() as logs:
        await warm_up(settings, commits=3)

    assert [(log["event"], log["commits"]) for log in logs if "commits" in log] == [
        ("spark.warmed_up", 3)
    ]
    assert left(settings.staging_path) == []


async def test_a_server_that_does_not_answer_is_named_and_nothing_is_left(lake: Path) -> None:
    settings = load_settings(lake={"path": str(lake), "spark": "sc://127.0.0.1:9"})
    with pytest.raises(ExternalError, match=r"127\.0\.0\.1:9"):
        await warm_up(settings, commits=3)

    assert left(settings.staging_path) == []
