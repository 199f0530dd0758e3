"""Tokens for OAUTHBEARER: from a file, or from an endpoint by the client's id and secret."""

import asyncio
import base64
import json
import ssl
import threading
import time
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote_plus, urlencode
from urllib.request import (
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    build_opener,
)

import structlog
from aiokafka.abc import AbstractTokenProvider

from binwright.kafka.credentials import read_secret, sasl_password
from binwright.protocol.errors import SettingsError
from binwright.runtime.clock import wall_ms
from binwright.runtime.settings import KafkaSettings

log = structlog.get_logger()

UNKNOWN_LIFETIME_S = 300.0
"""Of a token that does not say when it expires."""
USED_SHARE = 0.8
"""Share of its lifetime for which a token of an endpoint serves new connections."""
ENDPOINT_S = 10.0
LARGEST_REPLY = 1 << 20


class TokenUnavailable(OSError):
    """No token could be had; aiokafka tries a connection that fails by this again."""


@dataclass(frozen=True, slots=True)
class Token:
    """A bearer token."""

    text: str = field(repr=False)
    lifetime_s: float


def token_source(kafka: KafkaSettings) -> "TokenSource | None":
    """Return where the connection's tokens come from; None: it uses none.

    Raises:
        SettingsError: The file of the token, or of the client's secret, cannot be read now.
    """
    if not kafka.security_protocol.startswith("SASL") or kafka.sasl_mechanism != "OAUTHBEARER":
        return None
    source = TokenSource(kafka)
    if kafka.sasl_token_file is not None:
        try:
            source.read()
        except TokenUnavailable as exc:
            raise SettingsError(f"kafka.sasl_token_file: {exc}") from exc
    return source


class TokenSource(AbstractTokenProvider):  # type: ignore[misc]  # aiokafka has no types
    """Gives a token for each connection: what a file holds now, or one of an endpoint.

    The latter is kept for `USED_SHARE` of its lifetime. Thread-safe.
    """

    def __init__(self, kafka: KafkaSettings) -> None:
        """Take tokens as these settings say; the mechanism is OAUTHBEARER."""
        self._kafka = kafka
        self._password = sasl_password(kafka)
        self._latest: Token | None = None
        self._fetched_at_s = 0.0
        self._lock = threading.Lock()

    async def token(self) -> str:
        """Return a token, for aiokafka; raise `TokenUnavailable`."""
        return (await asyncio.to_thread(self.read)).text

    def librdkafka(self, config: str) -> tuple[str, float]:
        """Return a token and when it expires, for librdkafka; raise `TokenUnavailable`."""
        del config
        token = self.read()
        return token.text, wall_ms() / 1000 + token.lifetime_s

    def read(self) -> Token:
        """Return a token; blocks while the endpoint is asked. Raises `TokenUnavailable`."""
        if self._kafka.sasl_token_file is not None:
            return _token_in(self._kafka.sasl_token_file)
        with self._lock:
            now = time.monotonic()
            latest, age_s = self._latest, now - self._fetched_at_s
            if latest and age_s < latest.lifetime_s * USED_SHARE:
                return latest
            try:
                self._latest = self._fetch()
            except TokenUnavailable as exc:
                if not latest or age_s >= latest.lifetime_s:
                    raise
                log.warning("token.delayed", reason=str(exc))
                return latest
            self._fetched_at_s = now
            return self._latest

    def _fetch(self) -> Token:
        url = str(self._kafka.sasl_token_url)
        try:
            with _opener(url, self._kafka.sasl_token_ca_file).open(
                self._request(url), timeout=ENDPOINT_S
            ) as reply:
                answer = json.loads(reply.read(LARGEST_REPLY))
            return _token_of(answer)
        except HTTPError as exc:
            raise TokenUnavailable(f"{url} gives no token: {exc.code} {_refusal(exc)}") from exc
        except URLError as exc:
            raise TokenUnavailable(f"{url} gives no token: {exc.reason}") from exc
        except OSError as exc:
            raise TokenUnavailable(
                f"{url} gives no token: {str(exc) or 'no answer in time'}"
            ) from exc
        except (ValueError, KeyError, TypeError, AttributeError):  # would quote the reply
            raise TokenUnavailable(f"{url} gives no token: it replies something else") from None

    def _request(self, url: str) -> Request:
        secret = self._password() if callable(self._password) else self._password
        pair = f"{quote_plus(str(self._kafka.sasl_username))}:{quote_plus(str(secret))}"
        form = {"grant_type": "client_credentials"}
        if self._kafka.sasl_token_scope:
            form["scope"] = self._kafka.sasl_token_scope
        login = base64.b64encode(pair.encode()).decode()
        headers = {"Authorization": f"Basic {login}", "Accept": "application/json"}
        return Request(url, urlencode(form).encode(), headers)  # noqa: S310 - checked by the settings


class _NoRedirects(HTTPRedirectHandler):
    """Lets no endpoint send the client's secret somewhere else."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _opener(url: str, ca_file: Path | None) -> OpenerDirector:
    if url.startswith("http:"):
        return build_opener(_NoRedirects, ProxyHandler({}))  # it is on this machine
    context = ssl.create_default_context(cafile=ca_file)
    return build_opener(_NoRedirects, HTTPSHandler(context=context))


def _token_of(answer: Any) -> Token:
    """Return the token in an endpoint's reply; raise what its lack or its kind raises."""
    text = str(answer["access_token"])
    lifetime_s = float(answer.get("expires_in") or _lifetime_s(text))
    if not (text and isfinite(lifetime_s)):
        raise ValueError(lifetime_s)
    return Token(text, lifetime_s)


def _refusal(error: HTTPError) -> str:
    """Return why an endpoint refuses: the code that OAuth has for it, else HTTP's words."""
    try:
        code = json.loads(error.read(LARGEST_REPLY))["error"]
    except (OSError, ValueError, KeyError, TypeError):
        return error.reason
    return (
        code if isinstance(code, str) and code.isascii() and code.isidentifier() else error.reason
    )


def _token_in(file: Path) -> Token:
    try:
        text = read_secret(file, "kafka.sasl_token_file")
    except OSError as exc:
        raise TokenUnavailable(str(exc)) from exc
    return Token(text, _lifetime_s(text))


def _lifetime_s(token: str) -> float:
    """Return how long a token is still valid if it says so, as a JWT does."""
    try:
        part = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
        return float(claims["exp"]) - wall_ms() / 1000
    except (IndexError, ValueError, KeyError, TypeError):
        return UNKNOWN_LIFETIME_S
