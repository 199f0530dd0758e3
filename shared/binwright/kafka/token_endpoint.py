"""Asks an endpoint of OAuth for a token, by the client's id and secret."""

import json
import ssl
from math import isfinite
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote_plus, urlencode
from urllib.request import HTTPSHandler, OpenerDirector, ProxyHandler, Request

from binwright.kafka.tokens import Token, TokenUnavailable, lifetime_of
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.runtime.web import basic_login, opener

ENDPOINT_S = 10.0
LARGEST_REPLY = 1 << 20


def fetch_token(kafka: KafkaSettings, secret: str) -> Token:
    """Return a token of `kafka.sasl_token_url`; blocks. Raises `TokenUnavailable`."""
    url = str(kafka.sasl_token_url)
    try:
        with _opener(url, kafka.sasl_token_ca_file).open(
            _request(url, kafka, secret), timeout=ENDPOINT_S
        ) as reply:
            answer = json.loads(reply.read(LARGEST_REPLY))
        return _token_of(answer)
    except HTTPError as exc:
        raise TokenUnavailable(f"{url} gives no token: {exc.code} {_refusal(exc)}") from exc
    except URLError as exc:
        raise TokenUnavailable(f"{url} gives no token: {exc.reason}") from exc
    except OSError as exc:
        raise TokenUnavailable(f"{url} gives no token: {str(exc) or 'no answer in time'}") from exc
    except (ValueError, KeyError, TypeError, AttributeError):  # would quote the reply
        raise TokenUnavailable(f"{url} gives no token: it replies something else") from None


def _request(url: str, kafka: KafkaSettings, secret: str) -> Request:
    login = basic_login(quote_plus(str(kafka.sasl_username)), quote_plus(secret))
    form = {"grant_type": "client_credentials"}
    if kafka.sasl_token_scope:
        form["scope"] = kafka.sasl_token_scope
    headers = {"Authorization": login, "Accept": "application/json"}
    return Request(url, urlencode(form).encode(), headers)  # noqa: S310 - checked by the settings


def _opener(url: str, ca_file: Path | None) -> OpenerDirector:
    if url.startswith("http:"):
        return opener(ProxyHandler({}))  # it is on this machine
    context = ssl.create_default_context(cafile=ca_file)
    return opener(HTTPSHandler(context=context))


def _token_of(answer: Any) -> Token:
    """Return the token in an endpoint's reply; raise what its lack or its kind raises."""
    text = str(answer["access_token"])
    lifetime_s = float(answer.get("expires_in") or lifetime_of(text))
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
