"""The gRPC channel of a Spark Connect session: how its token travels, and who is refused."""

from collections.abc import Iterable
from typing import Any

import grpc
from pyspark.errors.exceptions.connect import SparkConnectGrpcException
from pyspark.sql.connect.client import DefaultChannelBuilder

from binwright.runtime.spark_url import CLEARTEXT, LOOPBACK

WHAT_TO_CHECK = (
    "Check the token: lake.token_file, the one in lake.spark, or SPARK_CONNECT_AUTHENTICATE_TOKEN"
)
_OWN = (CLEARTEXT,)
_REFUSALS = ("UNAUTHENTICATED", "PERMISSION_DENIED")


def is_refusal(exc: BaseException) -> bool:
    """Return whether a server refuses the client: its token is missing, wrong or expired."""
    if not isinstance(exc, SparkConnectGrpcException):
        return False
    return exc.getGrpcStatusCode().name in _REFUSALS


class SparkChannel(DefaultChannelBuilder):  # type: ignore[misc]
    """pyspark's channel, which also sends tokens to 127.0.0.1, or in clear text if the URL says so.

    pyspark itself sends a token without TLS to the host `localhost` alone; with any other host it
    turns TLS on, whatever the server has.
    """

    def toChannel(self) -> grpc.Channel:  # noqa: N802 - pyspark's name
        """Return a channel as the URL wants it."""
        if self.token is None or self.use_ssl:
            return super().toChannel()
        if self.host.strip("[]") in LOOPBACK:
            token = grpc.access_token_call_credentials(self.token)
            local = grpc.local_channel_credentials()
            return self._secure_channel(
                self.endpoint, grpc.composite_channel_credentials(local, token)
            )
        if self._in_cleartext:
            return self._insecure_channel(self.endpoint)
        return super().toChannel()

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
            and self.host.strip("[]") not in LOOPBACK
        )
