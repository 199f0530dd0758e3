"""What every answer has, and what one answer has besides."""

import aiohttp

from binwright.local.server import reserve_port
from binwright.runtime.http import Response, serve_http


async def test_an_answer_may_have_headers_of_its_own() -> None:
    with reserve_port() as port:
        free = port
    answer = Response(b"x", "text/plain", headers={"Cache-Control": "no-store"})
    async with (
        serve_http({"/": lambda: answer}, "127.0.0.1", free, "page"),
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{free}/") as found,
    ):
        assert found.headers["Cache-Control"] == "no-store"
        assert found.content_type == "text/plain"
        assert await found.text() == "x"
