"""Something answered over HTTP, as long as a body runs."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass

from binwright.core.errors import SettingsError


@dataclass(frozen=True, slots=True)
class Answer:
    """What a path is answered with."""

    body: bytes
    content_type: str = "application/json"
    status: int = 200


@contextlib.asynccontextmanager
async def answering(
    paths: Mapping[str, Callable[[], Answer]], address: str, port: int, name: str
) -> AsyncIterator[None]:
    """Answer GET on `paths` meanwhile.

    Args:
        paths: What is asked for each time that somebody asks.
        address: To listen on.
        port: To listen on.
        name: Whose port this is, for people.

    Raises:
        SettingsError: The port cannot be had.
    """
    # Its import takes a quarter of a second: only for those who serve.
    from aiohttp import web  # noqa: PLC0415

    def handler(ask: Callable[[], Answer]) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def handle(_: web.Request) -> web.Response:
            told = ask()
            return web.Response(
                body=told.body, status=told.status, content_type=told.content_type, charset="utf-8"
            )

        return handle

    app = web.Application()
    for path, ask in paths.items():
        app.router.add_get(path, handler(ask))
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, address, port).start()
        except OSError as exc:
            raise SettingsError(f"{name}: {address}:{port}: {exc}") from exc
        yield
    finally:
        await runner.cleanup()
