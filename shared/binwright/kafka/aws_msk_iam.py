"""Tokens for Amazon MSK by IAM, signed with the credentials that AWS' SDK finds."""

import os
import re

try:
    from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
except ImportError as exc:
    raise ImportError("it needs pip install 'binwright[aws]'") from exc

REGION = re.compile(r"\.kafka(?:-serverless)?\.([a-z0-9-]+)\.amazonaws\.com")


def token(bootstrap_servers: str) -> tuple[str, float]:
    """Return a token, and when it expires, s since 1970.

    Raises:
        ValueError: Neither the environment nor the servers' names have the region.
        Exception: Whatever the SDK raises, where it finds no credentials.
    """
    text, expires_ms = MSKAuthTokenProvider.generate_auth_token(_region(bootstrap_servers))
    return text, expires_ms / 1000


def _region(bootstrap_servers: str) -> str:
    named = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if named:
        return named
    if match := REGION.search(bootstrap_servers):
        return match[1]
    raise ValueError("set AWS_REGION: kafka.bootstrap_servers names no region of MSK")
