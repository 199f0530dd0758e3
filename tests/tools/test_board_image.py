"""The picture of the board has the board's panels, with the lines that Prometheus has for them."""

import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tools.board_image import panels, write

SINCE_S, UNTIL_S = 1_000_000.0, 1_000_600.0
NUMBERS = {"metric": {"table": "orders", "group": "eu"}, "values": [[SINCE_S, "1"], [UNTIL_S, "3"]]}
NONE = {"metric": {"table": "clicks", "group": "eu"}, "values": [[SINCE_S, "NaN"]]}


async def drawn(file: Path, answer: dict[str, Any]) -> list[dict[str, str]]:
    """Draw the board of a Prometheus that gives this answer; return what it was asked."""
    asked: list[dict[str, str]] = []

    async def respond(request: web.Request) -> web.Response:
        asked.append(dict(request.query))
        return web.Response(text=json.dumps(answer), content_type="application/json")

    application = web.Application()
    application.router.add_get("/api/v1/query_range", respond)
    runner = web.AppRunner(application)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        port = runner.addresses[0][1]
        await write(f"http://127.0.0.1:{port}", file, "eu", SINCE_S, UNTIL_S)
    finally:
        await runner.cleanup()
    return asked


async def test_it_has_every_panel_and_line_and_asks_every_query_of_the_board(
    tmp_path: Path,
) -> None:
    file = tmp_path / "board.svg"
    result = {"status": "success", "data": {"result": [NUMBERS, NONE]}}
    asked = await drawn(file, result)
    text = file.read_text()
    assert [panel["title"] for panel in panels() if f">{panel['title']}<" not in text] == []
    assert ">orders</text>" in text
    assert ">eu load</text>" in text
    assert "clicks" not in text  # no number, no line
    assert len(asked) == sum(len(panel["targets"]) for panel in panels())
    assert {(each["start"], each["end"]) for each in asked} == {(str(SINCE_S), str(UNTIL_S))}


async def test_a_query_that_prometheus_refuses_is_an_error_with_its_reason(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="parse error"):
        await drawn(tmp_path / "board.svg", {"status": "error", "error": "parse error"})
    assert not (tmp_path / "board.svg").exists()
