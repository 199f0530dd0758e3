"""A real browser for tests: the system's Chromium, driven by its DevTools protocol."""

import asyncio
import base64
import contextlib
import itertools
import json
import os
import subprocess
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import aiohttp
from tests.programs import ProgramMissing, program_of_apt

from binwright.runtime.run import background_tasks

START_S, ANSWER_S, WAIT_S, END_S = 60.0, 30.0, 20.0, 10.0
POLL_S = 0.05
FLAGS = (
    "--headless",
    "--remote-debugging-port=0",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-gpu",
    "--disable-sync",
    "--no-first-run",
    # Nothing but this machine can be reached, whatever a page asks for.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


class Failed(AssertionError):
    """The page did not do, or did what it must not."""


@cache
def program() -> str:
    """Return the browser's program, installed by apt where that can be done.

    Raises:
        ProgramMissing: There is none, and none can be had; says why.
    """
    names = ("chromium", "chromium-browser", "google-chrome")
    return program_of_apt(names, "chromium", "fonts-dejavu-core")


@contextlib.contextmanager
def chromium(directory: Path) -> Iterator[str]:
    """Run the browser; give the address at which it is driven.

    Raises:
        ProgramMissing: There is none.
    """
    root = ("--no-sandbox",) if os.geteuid() == 0 else ()
    command = (program(), *FLAGS, *root, f"--user-data-dir={directory / 'profile'}")
    with (directory / "chromium.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield f"http://127.0.0.1:{_port(process, directory)}"
    finally:
        process.terminate()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(END_S)


def _port(process: subprocess.Popen[bytes], directory: Path) -> int:
    reply, deadline = directory / "profile" / "DevToolsActivePort", time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(FileNotFoundError):
            if lines := reply.read_text().splitlines():
                return int(lines[0])
        time.sleep(POLL_S)
    raise ProgramMissing(
        f"chromium did not start: {(directory / 'chromium.log').read_text()[-500:]}"
    )


@dataclass
class Tab:
    """One page of the browser.

    Attributes:
        requests: The address of everything that the page has asked for.
        errors: What it wrote on its console as an error, and its uncaught exceptions.
    """

    socket: aiohttp.ClientWebSocketResponse
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    _loaded: asyncio.Event = field(default_factory=asyncio.Event)
    _replies: dict[int, asyncio.Future[Any]] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    async def send(self, method: str, **parameters: Any) -> Any:
        """Ask the browser for something; return its reply."""
        number = next(self._numbers)
        reply = self._replies[number] = asyncio.get_running_loop().create_future()
        await self.socket.send_json({"id": number, "method": method, "params": parameters})
        async with asyncio.timeout(ANSWER_S):
            return await reply

    async def listen(self) -> None:
        """Read what the browser sends, until it closes the tab."""
        async for message in self.socket:
            event = json.loads(message.data)
            if reply := self._replies.pop(event.get("id", 0), None):
                if "error" in event:
                    reply.set_exception(Failed(str(event["error"])))
                else:
                    reply.set_result(event["result"])
            else:
                self._note(event.get("method", ""), event.get("params", {}))

    def _note(self, method: str, found: Mapping[str, Any]) -> None:
        match method:
            case "Page.loadEventFired":
                self._loaded.set()
            case "Network.requestWillBeSent":
                self.requests.append(found["request"]["url"])
            case "Runtime.exceptionThrown":
                self.errors.append(str(found["exceptionDetails"]))
            case "Runtime.consoleAPICalled" if found["type"] in {"error", "assert"}:
                self.errors.append(str(found["args"]))
            case "Log.entryAdded" if found["entry"]["level"] == "error":
                self.errors.append(f"{found['entry']['text']} {found['entry'].get('url', '')}")

    async def open(self, address: str) -> None:
        """Go to a page, and wait until it is loaded."""
        self._loaded.clear()
        await self.send("Page.navigate", url=address)
        async with asyncio.timeout(ANSWER_S):
            await self._loaded.wait()

    async def value(self, expression: str) -> Any:
        """Return what an expression of JavaScript gives, as JSON has it."""
        reply = await self.send(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in reply:
            raise Failed(f"{expression}: {reply['exceptionDetails']}")
        return reply["result"].get("value")

    async def until(self, expression: str, within_s: float = WAIT_S) -> Any:
        """Wait until an expression is true; return what it gives, or true for an element."""
        asked = f"(found => found instanceof Node || found)({expression})"
        try:
            async with asyncio.timeout(within_s):
                while not (found := await self.value(asked)):  # noqa: ASYNC110 - polls the browser
                    await asyncio.sleep(POLL_S)
        except TimeoutError as exc:
            text = await self.value("document.body.innerText")
            raise Failed(f"never true: {expression}; the page says: {text[:2000]}") from exc
        return found

    async def press(self, *keys: str) -> None:
        """Press keys by their names, one after the other."""
        for key in keys:
            more = {"text": "\r"} if key == "Enter" else {}
            code = {"key": key, "code": key, "windowsVirtualKeyCode": KEY_CODES[key], **more}
            await self.send("Input.dispatchKeyEvent", type="keyDown", **code)
            await self.send("Input.dispatchKeyEvent", type="keyUp", **code)

    async def size(self, width: int, height: int, *, scale: float = 1.0) -> None:
        """Make the window so large, in CSS pixels."""
        size = {"width": width, "height": height, "deviceScaleFactor": scale}
        await self.send("Emulation.setDeviceMetricsOverride", mobile=False, **size)

    async def prefer(self, **features: str) -> None:
        """Set what the system prefers: `prefers_color_scheme="dark"`, and such."""
        found = [{"name": k.replace("_", "-"), "value": v} for k, v in features.items()]
        await self.send("Emulation.setEmulatedMedia", features=found)

    async def screenshot(self) -> bytes:
        """Return what the window shows, as PNG."""
        reply = await self.send("Page.captureScreenshot", format="png")
        return base64.b64decode(reply["data"])


KEY_CODES = {
    "Tab": 9,
    "Enter": 13,
    "PageUp": 33,
    "PageDown": 34,
    "End": 35,
    "Home": 36,
    "ArrowLeft": 37,
    "ArrowUp": 38,
    "ArrowRight": 39,
    "ArrowDown": 40,
}


@contextlib.asynccontextmanager
async def tab(browser: str) -> AsyncIterator[Tab]:
    """Give a new page of the browser at this address."""
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(ANSWER_S)) as session:
        async with session.put(f"{browser}/json/new?about:blank") as answer:
            target = await answer.json()
        address = target["webSocketDebuggerUrl"]
        async with session.ws_connect(address, max_msg_size=0) as socket:
            found = Tab(socket)
            async with background_tasks(found.listen()):
                for domain in ("Page", "Network", "Runtime", "Log"):
                    await found.send(f"{domain}.enable")
                yield found
        async with session.get(f"{browser}/json/close/{target['id']}"):
            pass
