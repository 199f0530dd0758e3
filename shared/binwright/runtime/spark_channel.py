"""The gRPC channel of a Spark Connect session: how its token travels, and who is refused."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import grpc
from pyspark.errors.exceptions.connect import SparkConnectGrpcException
from pyspark.sql.connect.client import DefaultChannelBuilder

from binwright.runtime.environment import grpc_proxy
from binwright.runtime.spark_url import CA_FILE, CLEARTEXT

_IF_REFUSED = (
    "Check the token: lake.token_file, the one in lake.spark, or SPARK_CONNECT_AUTHENTICATE_TOKEN"
)
_IF_UNTRUSTED = (
    "Check that lake.ca_file is the authority of the server's certificate, that the certificate "
    "names the host of lake.spark, and that the server has TLS: use_ssl=true, and a token without "
    "lake.allow_cleartext_token, want it"
)
_OWN = (CLEARTEXT, CA_FILE)
_REFUSALS = ("UNAUTHENTICATED", "PERMISSION_DENIED")
_UNTRUSTED = ("handshake failed", "verification check failed", "Verification Check failed")
OWN_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
"""A token may go there in clear text; other addresses of the loopback are taken for others."""


def refusal(exc: BaseException, line: str) -> str | None:
    """Return what is wrong and what to check if that is known; else None.

    Args:
        exc: The client's error.
        line: The error in one line.
    """
    if not isinstance(exc, SparkConnectGrpcException):
        return None
    status = exc.getGrpcStatusCode().name
    if status in _REFUSALS:
        return f"refuses this client ({line}). {_IF_REFUSED}"
    if status == "UNAVAILABLE" and any(words in line for words in _UNTRUSTED):
        return f"cannot be trusted ({line}). {_IF_UNTRUSTED}"
    if status == "UNAVAILABLE" and (proxy := grpc_proxy()):
        return (
            f"does not answer ({line}). Check that it runs, and, since {proxy} is set, that the "
            "proxy lets gRPC through or that no_proxy names the server's host"
        )
    return None


class SparkChannel(DefaultChannelBuilder):  # type: ignore[misc]
    """pyspark's channel, which also sends tokens to 127.0.0.1 or in clear text, and has `ca_file`.

    pyspark itself sends a token without TLS to the host `localhost` alone; with any other host it
    turns TLS on, whatever the server has.
    """

    def toChannel(self) -> grpc.Channel:  # noqa: N802 - pyspark's name
        """Return a channel as the URL wants it; raise `OSError` if its `ca_file` cannot be read."""
        if self.use_ssl:
            authority = self.getDefault(CA_FILE, None)
            roots = None if authority is None else Path(authority).read_bytes()
            return self._to(grpc.ssl_channel_credentials(roots))
        if self.token is None:
            return super().toChannel()
        if self.host.strip("[]") in OWN_HOSTS:
            return self._to(grpc.local_channel_credentials())
        if self._in_cleartext:
            return self._insecure_channel(self.endpoint)
        return super().toChannel()

    def _to(self, server: grpc.ChannelCredentials) -> grpc.Channel:
        if self.token is not None:
            token = grpc.access_token_call_credentials(self.token)
            server = grpc.composite_channel_credentials(server, token)
        return self._secure_channel(self.endpoint, server)

    def metadata(self) -> Iterable[tuple[str, Any]]:
        """Return what is sent with each call."""
        yield from ((name, value) for name, value in super().metadata() if name not in _OWN)
        if self._in_cleartext and self.token is not None:
            # gRPC takes no credentials on a channel without TLS.
            yield "authorization", f"Bearer {self.token}"

    @property
    def _in_cleartext(self) -> bool:
        return (
            self.getDefault(CLEARTEXT, "") == "true"
            and not self.use_ssl
            and self.host.strip("[]") not in OWN_HOSTS
        )
