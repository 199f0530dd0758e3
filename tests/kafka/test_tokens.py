"""Where tokens come from, and how long they serve."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trustme
from aiohttp import web
from tests.integration.security.issuer import Issuer, TokenEndpoint, run_token_endpoint

from binwright.kafka.tokens import UNKNOWN_LIFETIME_S, TokenSource, TokenUnavailable, token_source
from binwright.protocol.errors import SettingsError
from binwright.runtime.settings.kafka import KafkaSettings

USER, SECRET, SCOPE = "ann", "s3cret of:ann", "kafka"


def settings(**changes: object) -> KafkaSettings:
    own = {"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER"}
    return KafkaSettings.model_validate(own | changes)


def of_endpoint(url: str, **changes: object) -> TokenSource:
    values = {"sasl_token_url": url, "sasl_username": USER, "sasl_password": SECRET}
    source = token_source(settings(**(values | changes)))
    assert source
    return source


@pytest.fixture
async def endpoint(tmp_path: Path) -> AsyncIterator[TokenEndpoint]:
    async with run_token_endpoint(Issuer(tmp_path / "jwks.json"), USER, SECRET) as running:
        yield running


async def test_a_token_serves_for_most_of_its_lifetime(endpoint: TokenEndpoint) -> None:
    source = of_endpoint(endpoint.url)
    assert await source.token() == await source.token()
    assert endpoint.scopes == [""]


async def test_a_token_that_is_about_to_expire_is_renewed(endpoint: TokenEndpoint) -> None:
    endpoint.valid_s = 1e-6
    source = of_endpoint(endpoint.url, sasl_token_scope=SCOPE)
    await source.token()
    await source.token()
    assert endpoint.scopes == [SCOPE, SCOPE]


async def test_a_reply_may_leave_open_when_its_token_expires(endpoint: TokenEndpoint) -> None:
    source = of_endpoint(endpoint.url)
    endpoint.reply = web.json_response({"access_token": "opaque"})
    assert (await asyncio.to_thread(source.read)).lifetime_s == UNKNOWN_LIFETIME_S


async def test_a_valid_token_serves_on_while_none_can_be_had(
    endpoint: TokenEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = of_endpoint(endpoint.url)
    token = await source.token()
    monkeypatch.setattr("binwright.kafka.tokens.USED_SHARE", 0.0)
    endpoint.reply = web.Response(status=503)
    assert await source.token() == token


async def test_a_secret_that_is_renewed_in_its_file_is_used(
    endpoint: TokenEndpoint, tmp_path: Path
) -> None:
    file = tmp_path / "secret"
    file.write_text("before")
    source = of_endpoint(endpoint.url, sasl_password=None, sasl_password_file=file)
    with pytest.raises(TokenUnavailable, match="401 invalid_client"):
        await source.token()
    file.write_text(SECRET)
    assert await source.token()


@pytest.mark.parametrize("trusted", [True, False])
async def test_an_endpoint_is_trusted_by_its_authority(tmp_path: Path, *, trusted: bool) -> None:
    ours, other = trustme.CA(), trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    ours.issue_cert("127.0.0.1").configure_cert(context)
    file = tmp_path / "ca.pem"
    (ours if trusted else other).cert_pem.write_to_path(file)
    issuer = Issuer(tmp_path / "jwks.json")
    async with run_token_endpoint(issuer, USER, SECRET, context) as endpoint:
        source = of_endpoint(endpoint.url, sasl_token_ca_file=file)
        if trusted:
            assert await source.token()
        else:
            with pytest.raises(TokenUnavailable, match="unable to get local issuer certificate"):
                await source.token()


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (web.Response(text=SECRET), "it replies something else"),
        (web.json_response([SECRET]), "it replies something else"),
        (web.json_response({"access_token": "a", "expires_in": "soon"}), "it replies something"),
        (web.json_response({"access_token": "a", "expires_in": float("nan")}), "it replies some"),
        (web.Response(status=302, headers={"Location": "http://127.0.0.1:1/"}), "302 Found"),
        (web.json_response({"error": SECRET}, status=400), "400 Bad Request"),
        (web.Response(status=503), "503 Service Unavailable"),
    ],
)
async def test_a_reply_without_a_token_is_reported_without_its_text(
    endpoint: TokenEndpoint, reply: web.Response, reason: str
) -> None:
    """A redirect would carry the client's secret to another place."""
    source, endpoint.reply = of_endpoint(endpoint.url), reply
    with pytest.raises(TokenUnavailable, match=reason) as caught:
        await source.token()
    assert SECRET not in str(caught.value)


async def test_a_token_in_a_file_is_read_each_time(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("one\n")
    source = token_source(settings(sasl_token_file=file))
    assert source
    assert source.read().lifetime_s == UNKNOWN_LIFETIME_S
    file.write_text(Issuer(tmp_path / "jwks.json").token(USER, valid_s=100))
    assert source.read().lifetime_s == pytest.approx(100, abs=5)
    file.unlink()
    with pytest.raises(TokenUnavailable, match="No such file"):
        await source.token()


@pytest.mark.parametrize("text", [None, " \n"])
def test_a_token_s_file_that_holds_none_is_the_settings_fault(
    tmp_path: Path, text: str | None
) -> None:
    file = tmp_path / "token"
    if text:
        file.write_text(text)
    with pytest.raises(SettingsError, match=r"kafka\.sasl_token_file: .*token"):
        token_source(settings(sasl_token_file=file))


def test_other_mechanisms_need_no_token() -> None:
    assert token_source(KafkaSettings()) is None
