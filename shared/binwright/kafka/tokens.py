"""Tokens for OAUTHBEARER: of a file, of an endpoint by the client's id and secret, of a package."""

import asyncio
import base64
import json
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from aiokafka.abc import AbstractTokenProvider

from binwright.kafka.credentials import sasl_password
from binwright.kafka.token_providers import TokenProvider, provider
from binwright.protocol.log_events import LogEvent
from binwright.runtime.clock import wall_ms
from binwright.runtime.logs import log
from binwright.runtime.secret_files import read_secret, secret_at_start
from binwright.runtime.settings.kafka import KafkaSettings

TOKEN_DELAYED = LogEvent.warning(
    "token.delayed",
    "No new token for Kafka could be had, so new connections use the one before, which is still "
    "valid.",
)

UNKNOWN_LIFETIME_S = 300.0
"""Of a token that does not say when it expires."""
USED_SHARE = 0.8
"""Share of its lifetime for which a token of an endpoint serves new connections."""


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
        SettingsError: The file of the token, or of the client's secret, cannot be read now, or
            there is no such provider.
    """
    if not kafka.security_protocol.startswith("SASL") or kafka.sasl_mechanism != "OAUTHBEARER":
        return None
    if kafka.sasl_token_file is not None:
        secret_at_start(kafka.sasl_token_file, "kafka.sasl_token_file")
    name = kafka.sasl_token_provider
    return TokenSource(kafka, None if name is None else provider(name))


class TokenSource(AbstractTokenProvider):  # type: ignore[misc]  # aiokafka has no types
    """Gives a token for each connection: what a file holds now, or one that is asked for.

    The latter is kept for `USED_SHARE` of its lifetime. Thread-safe.
    """

    def __init__(self, kafka: KafkaSettings, provided_by: TokenProvider | None = None) -> None:
        """Take tokens as these settings say; the mechanism is OAUTHBEARER."""
        self._kafka, self._provided_by = kafka, provided_by
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
        """Return a token; blocks while one is asked for. Raises `TokenUnavailable`."""
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
                log(TOKEN_DELAYED, reason=str(exc))
                return latest
            self._fetched_at_s = now
            return self._latest

    def _fetch(self) -> Token:
        if self._provided_by is not None:
            return self._provided(self._provided_by)
        from binwright.kafka.token_endpoint import fetch_token  # noqa: PLC0415 - HTTP takes a while

        secret = self._password() if callable(self._password) else self._password
        return fetch_token(self._kafka, str(secret))

    def _provided(self, provided_by: TokenProvider) -> Token:
        name = self._kafka.sasl_token_provider
        try:
            text, expires_s = provided_by(self._kafka.bootstrap_servers)
            return Token(str(text), float(expires_s) - wall_ms() / 1000)
        except Exception as exc:  # it is another's code
            reason = str(exc) or type(exc).__name__
            raise TokenUnavailable(f"the token provider {name} gives no token: {reason}") from exc


def _token_in(file: Path) -> Token:
    try:
        text = read_secret(file, "kafka.sasl_token_file")
    except OSError as exc:
        raise TokenUnavailable(str(exc)) from exc
    return Token(text, lifetime_of(text))


def lifetime_of(token: str) -> float:
    """Return how long a token is still valid if it says so, as a JWT does."""
    try:
        part = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
        return float(claims["exp"]) - wall_ms() / 1000
    except (IndexError, ValueError, KeyError, TypeError):
        return UNKNOWN_LIFETIME_S
