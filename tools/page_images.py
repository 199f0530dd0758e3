"""The pictures of the page in the README, made again: `python -m tools.page_images`.

They show docs/images/page.json: what the page of a demo was given at a moment with moves. A newer
one is written by `python -m tools.page_images --record http://127.0.0.1:8088` beside a demo.
"""

import asyncio
import contextlib
import json
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
from tests.chromium import chromium, tab

from binwright.local.server import reserve_port
from binwright.look.page.server import document_paths
from binwright.runtime.http import Listener, Paths, Response, serve_http

IMAGES = Path(__file__).parents[1] / "docs" / "images"
RECORDED = IMAGES / "page.json"
WIDTH, HEIGHT = 1100, 838  # CSS pixels
LARGEST = 150_000  # bytes of a picture
RECORD_S, POLL_S = 600.0, 0.3
CONSUMERS = 4  # at least, in a recorded view


def _given(body: bytes) -> Response:
    return Response(body)


async def take() -> None:
    """Write both pictures."""
    recorded = json.loads(RECORDED.read_text())
    answers = {
        f"/{name}": partial(_given, json.dumps(each).encode()) for name, each in recorded.items()
    }
    with reserve_port() as found:
        port = found
    async with contextlib.AsyncExitStack() as stack:
        place = stack.enter_context(tempfile.TemporaryDirectory())
        browser = stack.enter_context(chromium(Path(place)))
        paths: Paths = {**document_paths(), **answers}
        await stack.enter_async_context(serve_http(paths, Listener("127.0.0.1", port, "page")))
        opened = await stack.enter_async_context(tab(browser))
        await opened.size(WIDTH, HEIGHT)
        await opened.send("Emulation.setScrollbarsHidden", hidden=True)
        await opened.prefer(prefers_reduced_motion="reduce")
        await opened.open(f"http://127.0.0.1:{port}/")
        await opened.until("document.querySelector('.block')")
        for scheme in ("light", "dark"):
            await opened.prefer(prefers_color_scheme=scheme, prefers_reduced_motion="reduce")
            image = await opened.screenshot()
            if len(image) > LARGEST:
                raise SystemExit(f"page-{scheme}.png: {len(image)} bytes, more than {LARGEST}")
            (IMAGES / f"page-{scheme}.png").write_bytes(image)


async def record(page: str) -> None:
    """Keep what the page at this address is given, once a plan is carried out."""
    async with aiohttp.ClientSession(page) as session, asyncio.timeout(RECORD_S):
        while True:
            view = await _get(session, "/view")
            if view["state"] == "moving" and len(view["consumers"]) >= CONSUMERS:
                break
            await asyncio.sleep(POLL_S)
        recorded = {"view": view, "history": await _get(session, "/history")}
    IMAGES.mkdir(exist_ok=True)
    RECORDED.write_text(json.dumps(recorded, ensure_ascii=False) + "\n")


async def _get(session: aiohttp.ClientSession, path: str) -> Any:
    async with session.get(path) as answer:
        return await answer.json()


if __name__ == "__main__":
    match sys.argv[1:]:
        case []:
            asyncio.run(take())
        case ["--record", page]:
            asyncio.run(record(page))
        case _:
            raise SystemExit(__doc__)
