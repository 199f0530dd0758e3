"""Reads responses and errors of HTTP APIs: the Kubernetes API and the container engine's."""

import contextlib
from collections.abc import AsyncIterator, Callable, Iterator

import aiohttp
import orjson

from binwright.protocol.errors import ExternalError


def error_message(body: bytes) -> str:
    """Return why a request was refused, from the body of the response."""
    try:
        message: str = orjson.loads(body)["message"]
    except (ValueError, KeyError, TypeError):  # not the API's: a proxy in between replied
        return body[:200].decode(errors="replace")
    return message


@contextlib.contextmanager
def translated_errors(path: str, unavailable: Callable[[str], ExternalError]) -> Iterator[None]:
    """Raise `unavailable(message)` where no response to the request for `path` comes."""
    try:
        yield
    except TimeoutError as exc:
        raise unavailable(f"no response in time: {path}") from exc
    except (aiohttp.ClientError, OSError) as exc:
        raise unavailable(f"{path}: {str(exc) or type(exc).__name__}") from exc


async def read_lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Yield whole lines of the body, however long: aiohttp's own reader fails on long ones."""
    rest = b""
    async for chunk in response.content.iter_any():
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line
