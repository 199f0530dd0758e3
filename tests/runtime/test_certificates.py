"""How long a certificate is still valid."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme

from binwright.runtime.certificates import certificate_samples
from binwright.runtime.health import Health

NAME = "binwright_client_certificate_expires_seconds"


@pytest.mark.parametrize("valid_s", [3600, -60])
def test_the_time_until_a_certificate_expires_is_a_metric_of_every_service(
    tmp_path: Path, valid_s: int
) -> None:
    file = tmp_path / "client.pem"
    ends = datetime.now(UTC) + timedelta(seconds=valid_s)
    trustme.CA().issue_cert("a.example", not_after=ends).cert_chain_pems[0].write_to_path(file)
    values = {sample.name: sample.value for sample in Health(10.0, file).samples()}
    assert values[NAME] == pytest.approx(valid_s, abs=30)


@pytest.mark.parametrize("text", [None, "no certificate"])
def test_an_unreadable_certificate_counts_as_one_that_expires_now(
    tmp_path: Path, text: str | None
) -> None:
    file = tmp_path / "client.pem"
    if text:
        file.write_text(text)
    assert [sample.value for sample in certificate_samples(file)] == [0]


def test_without_a_certificate_there_is_no_metric() -> None:
    assert NAME not in {sample.name for sample in Health(10.0).samples()}
