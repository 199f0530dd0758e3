"""Our side of the hooks: what is passed to the services by files; see `hooks/sitecustomize.py`."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.fault_schedule import Fault

HOOKS = Path(__file__).with_name("hooks")
ROOT = Path(__file__).parents[2]  # where hooks find `tests`


@dataclass(frozen=True, slots=True)
class Hit:
    """Who came to the step."""

    pid: int
    call: str  # which one it was, where a step is one of several calls; else the step


@dataclass(frozen=True, slots=True)
class AimedPoints:
    """The directory where chaos and the services meet."""

    directory: Path

    def environment(self) -> dict[str, str]:
        """Return the environment by which a service loads the hooks."""
        # And the code under test, where another is installed.
        under_test = os.environ.get("PYTHONPATH", "")
        path = os.pathsep.join(filter(None, [str(HOOKS), str(ROOT), under_test]))
        return {"CHAOS_AIMS": str(self.directory), "PYTHONPATH": path}

    def _write(self, name: str, text: str) -> None:
        # Whole or not at all: they look several times a second.
        draft = self.directory / f".{name}"
        draft.write_text(text)
        draft.rename(self.directory / name)

    def arm(self, fault: Fault, server: int | None = None) -> None:
        """Strike whoever comes to this step first; or, when it does, the process of a server."""
        for hit in self.directory.glob("hit-*"):
            hit.unlink()
        names = ("service", "step", "moment", "failure_mode")
        wanted = {name: getattr(fault, name) for name in names}
        self._write("aim", json.dumps(wanted | {"server": server}))

    def disarm(self) -> None:
        """Strike nobody any more."""
        (self.directory / "aim").unlink(missing_ok=True)

    def hit(self) -> Hit | None:
        """Return which process was struck, and in which call."""
        for file in self.directory.glob("hit-*"):
            _, pid, call = file.name.split("-", 2)
            return Hit(int(pid), call)
        return None

    def hide(self, pid: int) -> None:
        """Take a process out of the fleet's reach, for good."""
        unseen = self.directory / "unseen"
        before = unseen.read_text() if unseen.exists() else ""
        self._write("unseen", f"{before}{pid}\n")

    def skew(self, pid: int, seconds: float) -> None:
        """Put the wall clock of one process off; the others' are right."""
        self._write("skew", json.dumps({str(pid): seconds}))


def aimed_points(directory: Path) -> AimedPoints:
    """Make the meeting place."""
    directory.mkdir(parents=True, exist_ok=True)
    os.chmod(directory, 0o700)  # noqa: PTH101 - what is in it is obeyed
    return AimedPoints(directory)
