"""Packages that are installed beside binwright give tokens by the name of their entry point."""

import sys
from base64 import urlsafe_b64decode
from pathlib import Path
from urllib.parse import parse_qs, urlparse

import pytest

from binwright.kafka import aws_msk_iam
from binwright.kafka.token_providers import ENTRY_POINTS, provider
from binwright.kafka.tokens import TokenUnavailable, token_source
from binwright.protocol.errors import SettingsError
from binwright.runtime.clock import wall_ms
from binwright.runtime.settings.kafka import KafkaSettings

SERVERS = "b-1.orders.abc.c2.kafka.eu-west-1.amazonaws.com:9098"
MODULE = """
import time
asked = []
def token(servers):
    asked.append(servers)
    return f"token {len(asked)}", time.time() + 100
def broken(servers):
    raise RuntimeError("no role here")
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Installs a package with providers; returns the name of its module."""
    name = f"tokens_of_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    described = tmp_path / f"{name}-1.dist-info"
    described.mkdir()
    (described / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    points = [f"{each} = {name}:{each}" for each in ("token", "broken", "absent")]
    (described / "entry_points.txt").write_text("\n".join([f"[{ENTRY_POINTS}]", *points]))
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


def settings(name: str) -> KafkaSettings:
    return KafkaSettings.model_validate(
        {
            "bootstrap_servers": SERVERS,
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "OAUTHBEARER",
            "sasl_token_provider": name,
        }
    )


async def test_a_token_of_a_provider_serves_for_most_of_its_lifetime(
    installed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = token_source(settings("token"))
    assert source
    assert [await source.token(), await source.token()] == ["token 1"] * 2
    text, expires_s = source.librdkafka("")
    assert text == "token 1"
    assert expires_s - wall_ms() / 1000 == pytest.approx(100, abs=5)
    monkeypatch.setattr("binwright.kafka.tokens.USED_SHARE", 0.0)
    assert await source.token() == "token 2"
    assert sys.modules[installed].asked == [SERVERS] * 2


@pytest.mark.usefixtures("installed")
async def test_a_provider_that_fails_is_named_with_its_reason() -> None:
    source = token_source(settings("broken"))
    assert source
    with pytest.raises(TokenUnavailable, match="provider broken gives no token: no role here"):
        await source.token()


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("os:system", "no installed package has 'os:system'; there are: .*broken, token"),
        ("absent", "absent cannot be loaded"),
    ],
)
def test_only_what_is_installed_gives_tokens(name: str, reason: str) -> None:
    with pytest.raises(SettingsError, match=reason):
        token_source(settings(name))


def test_amazon_s_is_installed() -> None:
    assert provider("aws-msk-iam") is aws_msk_iam.token


@pytest.mark.parametrize("region", ["eu-west-1", "us-east-2"])
def test_amazon_s_signs_for_the_region(region: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The token is the URL, signed, of a request that the broker makes to see who it is."""
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a secret of tests")
    if region != "eu-west-1":  # that of the servers' names
        monkeypatch.setenv("AWS_REGION", region)
    text, expires_s = aws_msk_iam.token(SERVERS)
    assert 60 < expires_s - wall_ms() / 1000 <= 900
    url = urlparse(_decoded(text))
    assert url.hostname == f"kafka.{region}.amazonaws.com"
    (credential,) = parse_qs(url.query)["X-Amz-Credential"]
    assert credential.startswith("AKIAEXAMPLE/")
    assert credential.endswith(f"/{region}/kafka-cluster/aws4_request")
    assert "a secret of tests" not in _decoded(text)


def test_amazon_s_needs_a_region(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match="set AWS_REGION"):
        aws_msk_iam.token("localhost:9098")


def _decoded(token: str) -> str:
    return urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()
