"""Imported by Python itself in every service that chaos starts, and in nothing else.

The product has no hooks: here its messages and calls are wrapped from outside, so that a process
can end or stop itself before, during and after one of them, and behind some log events. Chaos and
the services share files in `CHAOS_AIMS`: `aim` (a step, taken by the first process that comes to
it, by renaming it to `hit-<pid>-<call>`; with the process of a server if that is struck instead),
`unseen` (processes out of the fleet's reach), `skew` (seconds that a process's wall clock is off).
"""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.chaos.pace import pace_patches
from tests.chaos.patch_on_import import ModulePatch, PatchOnImport
from tests.chaos.pod_memory import memory_patches

AIMS = Path(os.environ["CHAOS_AIMS"])
LOOK_S = 0.2
took_s: dict[str, float] = {}
"""Call -> how long the last one was under way."""
FAILURE_MODES = {
    "kill": signal.SIGKILL,
    "hang": signal.SIGSTOP,
    "zombie": signal.SIGSTOP,
    "kill_spark": signal.SIGKILL,
    "kill_registry": signal.SIGKILL,
}  # twin: none


def strike(service: str, step: str, moment: str, call: str = "") -> None:
    """End or stop this process, or end a server, if this is the step, and nobody was there before.

    Args:
        service: Of this process.
        step: To which it came.
        moment: Before, during or after it.
        call: Which one it is, where a step is one of several calls.
    """
    aim = AIMS / "aim"
    if not aim.exists():
        return
    try:
        wanted = json.loads(aim.read_text())
        if (wanted["service"], wanted["step"], wanted["moment"]) != (service, step, moment):
            return
        aim.rename(AIMS / f"hit-{os.getpid()}-{call or step}")
    except FileNotFoundError:
        return  # another process was first
    if (number := FAILURE_MODES.get(wanted["failure_mode"])) is not None:
        os.kill(wanted["server"] or os.getpid(), number)


def wrap(
    owner: type, name: str, service: str, step: Callable[[tuple[Any, ...]], str], call: str = ""
) -> None:
    """Make a coroutine method of a class check the aimed faults; `call`: as of `strike`.

    "During" is half of what the last such call took, since a small commit takes less than any
    number that is long for a large one. A call that ends before that is not struck: the next one
    is.
    """
    original = getattr(owner, name)

    @wraps(original)
    async def aimed(*args: Any, **more: Any) -> Any:
        loop, named = asyncio.get_running_loop(), step(args)
        strike(service, named, "before", call)
        # The first of a process: Spark's calls take longer than that, those to a disk do not.
        first_s = LOOK_S if named.startswith("lake.") else 0.0
        half_s = took_s[call or named] / 2 if (call or named) in took_s else first_s
        began = loop.time()
        during = loop.call_later(half_s, strike, service, named, "during", call)
        try:
            given = await original(*args, **more)
        finally:
            during.cancel()
            took_s[call or named] = loop.time() - began
        strike(service, named, "after", call)
        return given

    setattr(owner, name, aimed)


def wrap_logged(owner: type, name: str, service: str) -> None:
    """Make the method that carries out effects check for aimed faults after its log events."""
    original = getattr(owner, name)

    @wraps(original)
    def aimed(self: Any, effects: Any, *args: Any) -> Any:
        given = original(self, effects, *args)
        for event in [effect.event for effect in effects if hasattr(effect, "event")]:
            strike(service, event, "after")
        return given

    setattr(owner, name, aimed)


def kind_of(args: tuple[Any, ...]) -> str:
    """Return the kind of a published message, without its version: `stopped`."""
    return str(json.loads(args[4])["kind"]).partition("/")[0]


COMMITS = ("lake.append", "lake.add_files")
"""A batch lands by one of them: they are one step, `lake.commit`."""


def _calls(owner: str, names: Sequence[str], prefix: str) -> ModulePatch:
    def made(module: ModuleType) -> None:
        for name in names:
            call = f"{prefix}.{name}"
            step = "lake.commit" if call in COMMITS else call
            wrap(getattr(module, owner), name, "consumer", lambda _, step=step: step, call)  # type: ignore[misc]

    return made


def _before_altering(module: ModuleType) -> None:
    """Aim at the moment when a table's columns were read, and some are to be added or wider."""
    original = module.missing_columns

    @wraps(original)
    def aimed(*args: Any, **more: Any) -> Any:
        found = original(*args, **more)
        if found:
            strike("consumer", "delta.alter", "before")
        return found

    module.missing_columns = aimed  # type: ignore[attr-defined]


def _bus(service: str) -> ModulePatch:
    return lambda module: wrap(module.KafkaControlTopics, "publish", service, kind_of)


CONSUMER: dict[str, ModulePatch] = {
    "binwright.consumer.read.data_reader": _calls("KafkaDataReader", ("commit",), "offsets"),
    "binwright.consumer.stage.file_staging": _calls(
        "FileStaging", ("write", "delete", "write_lease", "delete_other_leases"), "staging"
    ),
    "binwright.consumer.land.lake.spark_lake": _calls(
        "SparkLake",
        (
            *("open", "claim", "history", "add_columns", "append_bad", "append", "add_files"),
            *("commit_stamp", "compact"),
        ),
        "lake",
    ),
    "binwright.consumer.land.lake.delta": _before_altering,
    "binwright.consumer.decode.registry": _calls(
        "SchemaRegistry", ("schema", "versions", "version"), "registry"
    ),
    "binwright.consumer.land.effects": lambda module: wrap_logged(
        module.Effects, "carry_out", "consumer"
    ),
}
"""What is wrapped once a consumer has imported it: it imports Spark's client late, and so do we."""


def install_aimed_faults(service: str) -> None:
    """Wrap what this service publishes and asks."""
    changes: dict[str, ModulePatch] = {"binwright.kafka.control_topics": _bus(service)}
    if service == "consumer":
        changes |= {**CONSUMER, **pace_patches(), **memory_patches()}
    sys.meta_path.insert(0, PatchOnImport(changes))


def lose_sight() -> None:
    """Keep the fleet from what is out of its reach, as on a node that is cut off."""
    from binwright.fleets.process import ProcessFleet  # noqa: PLC0415

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
            sent = json.loads(skew.read_text()) if skew.exists() else {}
            known["skew_s"] = float(sent.get(str(os.getpid()), 0.0))
        return known["skew_s"]

    time.time = lambda: real() + skew_s()
    time.time_ns = lambda: real_ns() + round(skew_s() * 1e9)


MODULES = ("consumer", "controller", "monitor")
for service in MODULES:
    if f"binwright.{service}" in sys.orig_argv:
        skew_clock()
        install_aimed_faults(service)
        if service == "controller":
            lose_sight()
