"""Signs tokens, and gives them to clients as an identity provider does."""

import base64
import json
import math
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote_plus

from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256

from binwright.local.server import HOST, reserve_port


class Issuer:
    """An issuer whose public key is in a file that the broker reads."""

    def __init__(self, file: Path, name: str = "https://issuer.example") -> None:
        self.file, self.name = file, name
        self._key = rsa.generate_private_key(65537, 2048)
        numbers = self._key.public_key().public_numbers()
        key = {"kty": "RSA", "kid": "one", "alg": "RS256", "use": "sig"}
        sizes = {"n": _base64(numbers.n.to_bytes(256)), "e": _base64(numbers.e.to_bytes(3))}
        file.write_text(json.dumps({"keys": [key | sizes]}))

    def token(self, user: str, *, valid_s: float = 3600.0) -> str:
        """Return a signed token of a user; with `valid_s` below 0 an expired one."""
        now = time.time()
        claims = {"sub": user, "iss": self.name, "aud": "kafka", "scope": "kafka"}
        times = {"iat": int(now) - 120, "exp": math.ceil(now + valid_s)}
        parts = {"alg": "RS256", "kid": "one"}, claims | times
        signed = ".".join(_base64(json.dumps(part).encode()) for part in parts)
        signature = self._key.sign(signed.encode(), padding.PKCS1v15(), SHA256())
        return f"{signed}.{_base64(signature)}"


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


@dataclass
class TokenEndpoint:
    """What gives tokens to clients that know the secret.

    Attributes:
        url: Its address.
        valid_s: Lifetime of the tokens.
        scopes: What each token that it gave is for.
        reply: Sent instead of a token.
    """

    url: str
    issuer: Issuer
    user: str
    secret: str
    valid_s: float = 3600.0
    scopes: list[str] = field(default_factory=list)
    reply: web.Response | None = None

    async def answer(self, request: web.Request) -> web.Response:
        form = await request.post()
        if self.reply:
            return self.reply
        kind, _, login = request.headers["Authorization"].partition(" ")
        user, _, secret = base64.b64decode(login).decode().partition(":")
        if (kind, unquote_plus(user), unquote_plus(secret)) != ("Basic", self.user, self.secret):
            return web.json_response({"error": "invalid_client"}, status=401)
        assert form["grant_type"] == "client_credentials"
        self.scopes.append(str(form.get("scope", "")))
        token = self.issuer.token(user, valid_s=self.valid_s)
        return web.json_response({"access_token": token, "expires_in": self.valid_s})


@asynccontextmanager
async def run_token_endpoint(
    issuer: Issuer, user: str, secret: str, tls: ssl.SSLContext | None = None
) -> AsyncIterator[TokenEndpoint]:
    """Serve tokens while the body runs; with `tls` by https."""
    with reserve_port() as port:
        pass
    url = f"{'https' if tls else 'http'}://{HOST}:{port}/token"
    endpoint = TokenEndpoint(url, issuer, user, secret)
    application = web.Application()
    application.router.add_post("/token", endpoint.answer)
    runner = web.AppRunner(application)
    await runner.setup()
    try:
        await web.TCPSite(runner, HOST, port, ssl_context=tls).start()
        yield endpoint
    finally:
        await runner.cleanup()
