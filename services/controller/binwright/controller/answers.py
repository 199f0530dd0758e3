"""How the APIs that run consumers answer, or do not: Kubernetes' and the container engine's."""

import contextlib
from collections.abc import AsyncIterator, Callable, Iterator

import aiohttp
import orjson

from binwright.core.errors import WorldError


def reason(said: bytes) -> str:
    """Return why a request was refused, by the answer's body."""
    try:
        message: str = orjson.loads(said)["message"]
    except (ValueError, KeyError, TypeError):  # a proxy in between answers in its own words
        return said[:200].decode(errors="replace")
    return message


@contextlib.contextmanager
def answering(path: str, unavailable: Callable[[str], WorldError]) -> Iterator[None]:
    """Raise what `unavailable` makes of the words where no answer to `path` comes."""
    try:
        yield
    except TimeoutError as exc:
        raise unavailable(f"no answer in time: {path}") from exc
    except (aiohttp.ClientError, OSError) as exc:
        raise unavailable(f"{path}: {str(exc) or type(exc).__name__}") from exc


async def lines(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Yield whole lines, however long; aiohttp's own reader gives up on long ones."""
    rest = b""
    async for chunk in answer.content.iter_any():
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line
