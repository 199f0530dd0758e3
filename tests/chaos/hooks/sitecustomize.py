"""Imported by Python itself in every service that chaos starts, and in nothing else.

The product has no hooks: here its messages and writes are wrapped from outside, so that a process
can end or stop itself before, during and after one of them. Chaos and the services talk by files in
`CHAOS_AIMS`: `aim` (a step, taken by whoever comes to it first, by renaming it to `hit-<pid>`),
`unseen` (processes out of the fleet's reach), `skew` (seconds that a process's wall clock is off).
"""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

AIMS = Path(os.environ["CHAOS_AIMS"])
LOOK_S = 0.2
DEEDS = {"kill": signal.SIGKILL, "hang": signal.SIGSTOP, "zombie": signal.SIGSTOP}


def at(whose: str, step: str, moment: str) -> str | None:
    """Return what to do here and now, once; None: go on."""
    aim = AIMS / "aim"
    if not aim.exists():
        return None
    try:
        wanted = json.loads(aim.read_text())
        if (wanted["whose"], wanted["step"], wanted["moment"]) != (whose, step, moment):
            return None
        aim.rename(AIMS / f"hit-{os.getpid()}")
    except FileNotFoundError:
        return None  # another process was first
    return str(wanted["deed"])


def strike(deed: str | None) -> None:
    """End or stop this process, here."""
    if deed is not None:
        os.kill(os.getpid(), DEEDS[deed])


def wrap(owner: type, name: str, whose: str, step: Callable[[tuple[Any, ...]], str]) -> None:
    """Make a method of a class hear the aims."""
    original = getattr(owner, name)

    @wraps(original)
    async def aimed(*args: Any) -> Any:
        named = step(args)
        strike(at(whose, named, "before"))
        if (deed := at(whose, named, "during")) is not None:
            asyncio.get_running_loop().call_later(LOOK_S, strike, deed)
        given = await original(*args)
        strike(at(whose, named, "after"))
        return given

    setattr(owner, name, aimed)


def kind_of(args: tuple[Any, ...]) -> str:
    """Return what a published message says, without its version: `stopped`."""
    return str(json.loads(args[4])["kind"]).partition("/")[0]


def hear_aims(whose: str) -> None:
    """Wrap what this service says and writes."""
    from binwright.shell.bus import KafkaBus  # noqa: PLC0415 - only where a service runs

    wrap(KafkaBus, "publish", whose, kind_of)
    if whose == "consumer":
        from binwright.consumer.intake import KafkaIntake  # noqa: PLC0415
        from binwright.consumer.table import DeltaLake  # noqa: PLC0415

        for name in ("claim", "append", "history"):
            wrap(DeltaLake, name, whose, lambda _, n=name: f"lake.{n}")  # type: ignore[misc]
        wrap(KafkaIntake, "hint", whose, lambda _: "intake.hint")


def lose_sight() -> None:
    """Keep the fleet from what is out of its reach, as on a node that nobody can talk to."""
    from binwright.controller.fleets.process import ProcessFleet  # noqa: PLC0415

    original = ProcessFleet.running
    forgotten: list[Any] = []  # kept: what is collected would be killed

    def running(self: Any) -> Any:
        unseen = AIMS / "unseen"
        hidden = set(unseen.read_text().split()) if unseen.exists() else set()
        for slot, child in list(self._children.items()):
            if str(child.pid) in hidden:
                forgotten.append(self._children.pop(slot))
        seen = {s: [p for p in ps if str(p.pid) not in hidden] for s, ps in original(self).items()}
        return {slot: processes for slot, processes in seen.items() if processes}

    ProcessFleet.running = running  # type: ignore[method-assign]


def skew_clock() -> None:
    """Let Python's wall clock jump; what C libraries see stays as it is."""
    real, real_ns = time.time, time.time_ns
    known = {"at": 0.0, "skew_s": 0.0}

    def skew_s() -> float:
        if time.monotonic() - known["at"] > LOOK_S:
            known["at"] = time.monotonic()
            skew = AIMS / "skew"
            said = json.loads(skew.read_text()) if skew.exists() else {}
            known["skew_s"] = float(said.get(str(os.getpid()), 0.0))
        return known["skew_s"]

    time.time = lambda: real() + skew_s()
    time.time_ns = lambda: real_ns() + round(skew_s() * 1e9)


MODULES = ("consumer", "controller", "monitor")
for service in MODULES:
    if f"binwright.{service}" in sys.orig_argv:
        skew_clock()
        hear_aims(service)
        if service == "controller":
            lose_sight()
