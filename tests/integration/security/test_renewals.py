"""Certificates, tokens and passwords that are renewed under load: `tests.renewals`, for short."""

from pathlib import Path

import pytest
from tests.renewals.scenario import Lives, Renewals

pytestmark = pytest.mark.integration


@pytest.mark.nightly
async def test_renewed_credentials_restart_nothing(spark_url: str, tmp_path: Path) -> None:
    lives = Lives(load_s=30.0, certificate_s=16.0, token_s=6.0, password_s=10.0, restarts=1)
    done = Renewals(lives, tmp_path, print, spark_url)
    await done.run()
    assert done.audit is not None
    assert (done.audit.faults(), done.restarted, done.restarts) == ((), {}, 1)
    assert all(group.renewals > 2 for group in done.groups)
    assert {len(group.began) for group in done.groups} == {3}
