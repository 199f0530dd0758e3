"""Prometheus' own tool."""

import pytest
from tests.programs import ProgramMissing
from tests.prometheus_programs import promtool


@pytest.fixture(scope="session", autouse=True)
def _tool() -> None:
    """Build it, if need be; skip, with the reason, without it."""
    try:
        promtool()
    except ProgramMissing as exc:
        pytest.skip(str(exc))
