"""A container of the process kubelet: a process group, restarted when it ends."""

import asyncio
import os
import re
import shlex
import signal
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from binwright.kubernetes.objects import Obj

from .probes import passes
from .volumes import Absent

if TYPE_CHECKING:
    from .pod import Pod

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 4.0
STEADY_S = 30.0  # a container that lived so long is restarted without a longer pause
FIRST_PROBES_S = 0.25  # between readiness probes until one passes
CONFIG_S = 1.0


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replace $(NAME), as a kubelet does in commands and values."""
    return re.sub(r"\$\(([\w.-]+)\)", lambda m: variables.get(m[1], m[0]), text)


class Container:
    """One container's processes, one after the other."""

    def __init__(self, pod: "Pod", spec: Obj) -> None:
        self._pod, self._spec = pod, spec
        self._process: asyncio.subprocess.Process | None = None
        self._stopping = False
        self.status: Obj = {
            "name": spec["name"],
            "image": spec["image"],
            "imageID": "",
            "ready": False,
            "started": False,
            "restartCount": 0,
            "state": {"waiting": {"reason": "ContainerCreating"}},
            "lastState": {},
        }

    @property
    def pid(self) -> int | None:
        process = self._process
        return process.pid if process and process.returncode is None else None

    async def run(self) -> None:
        pause_s = FIRST_PAUSE_S
        loop = asyncio.get_running_loop()
        while True:  # until `stop` and the pod end it
            began = loop.time()
            try:
                argv, variables = await self._prepared()
            except Absent as exc:
                self._set_status(state={"waiting": {"reason": exc.reason, "message": str(exc)}})
                await asyncio.sleep(CONFIG_S)
                continue
            await self._run(argv, variables)
            if self._stopped():
                return
            if loop.time() - began > STEADY_S:
                pause_s = FIRST_PAUSE_S
            ended, count = self.status["state"], self.status["restartCount"]
            if count:  # the first restart is not reported as a crash loop
                text = f"back-off {pause_s:g}s restarting failed container={self._spec['name']}"
                waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": text}}
                self._set_status(state=waiting, lastState=ended)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            self._set_status(restartCount=count + 1, lastState=ended)

    def _stopped(self) -> bool:
        return self._stopping

    async def stop(self, grace_s: float) -> None:
        """Send SIGTERM, and SIGKILL after `grace_s`."""
        self._stopping = True
        await self._end(grace_s)

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal to the process group, if it runs."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    async def _end(self, grace_s: float) -> None:
        if self.pid is None:
            return
        assert self._process is not None
        if grace_s > 0:
            self.kill(signal.SIGTERM)
            with suppress(TimeoutError):
                async with asyncio.timeout(grace_s):
                    await self._process.wait()
        self.kill()
        await self._process.wait()

    async def _prepared(self) -> tuple[list[str], dict[str, str]]:
        image = self._spec["image"].rpartition("@")[0] or self._spec["image"]
        name = image.rpartition(":")[0] if ":" in image.rpartition("/")[2] else image
        entry = self._pod.host.images.get(name)
        if entry is None:
            raise Absent("ImagePullBackOff", f"Back-off pulling image {self._spec['image']}")
        variables = await self._variables()
        command = self._spec.get("command") or list(entry)
        argv = [expand(part, variables) for part in (*command, *self._spec.get("args", ()))]
        mounts = await self._pod.volumes.mounts(self._spec)
        lines = [f"mount --bind {shlex.quote(str(a))} {shlex.quote(b)}" for a, b in mounts]
        named = f"hostname {shlex.quote(self._pod.meta['name'])}"
        script = "; ".join([named, *lines, 'exec "$@"'])
        return ["unshare", "--mount", "--uts", "sh", "-ec", script, "sh", *argv], variables

    async def _variables(self) -> dict[str, str]:
        found = {"HOSTNAME": self._pod.meta["name"], **self._pod.host.environment}
        for source in self._spec.get("envFrom", ()):
            found |= await self._pod.volumes.env_from(source)
        for item in self._spec.get("env", ()):
            if origin := item.get("valueFrom"):
                value = await self._pod.volumes.value(origin)
                if value is not None:
                    found[item["name"]] = value
            else:
                found[item["name"]] = expand(item.get("value", ""), found)
        return found

    async def _run(self, argv: list[str], variables: Mapping[str, str]) -> None:
        log = self._pod.directory / f"{self._spec['name']}.log"
        with log.open("ab") as output:
            try:
                self._process = await asyncio.create_subprocess_exec(
                    *argv,
                    env=variables,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    cwd=self._pod.directory,
                    start_new_session=True,
                )
            except OSError as exc:
                waiting = {"reason": "RunContainerError", "message": str(exc)}
                self._set_status(state={"waiting": waiting}, started=False, ready=False)
                return
        began, identity = _now(), f"process://{self._process.pid}"
        ready = "readinessProbe" not in self._spec
        self._set_status(
            state={"running": {"startedAt": began}},
            started=True,
            ready=ready,
            containerID=identity,
        )
        probes = [
            asyncio.create_task(self._probe(kind, self._spec[kind]))
            for kind in ("readinessProbe", "livenessProbe")
            if kind in self._spec
        ]
        try:
            code = await self._process.wait()
        finally:
            for task in probes:
                task.cancel()
            await asyncio.gather(*probes, return_exceptions=True)
            self.kill()  # processes that it left in its group
        ended = {
            "exitCode": 128 - code if code < 0 else code,
            "reason": "Error" if code else "Completed",
            "startedAt": began,
            "finishedAt": _now(),
            "containerID": identity,
        }
        self._set_status(state={"terminated": ended}, started=False, ready=False)

    async def _probe(self, kind: str, spec: Obj) -> None:
        await asyncio.sleep(spec.get("initialDelaySeconds", 0))
        good = bad = 0
        period_s, ever = spec.get("periodSeconds", 10), False
        while True:
            passed = await passes(self._pod.address, self._spec, spec, self._pod.directory)
            good, bad, ever = (good + 1, 0, True) if passed else (0, bad + 1, ever)
            lost = bad >= spec.get("failureThreshold", 3)
            if kind == "readinessProbe":
                if good >= spec.get("successThreshold", 1) and not self.status["ready"]:
                    self._set_status(ready=True)
                elif lost and self.status["ready"]:
                    self._set_status(ready=False)
            elif lost:
                await self._end(self._pod.spec.get("terminationGracePeriodSeconds", 30))
                return
            await asyncio.sleep(
                FIRST_PROBES_S if kind == "readinessProbe" and not ever else period_s
            )

    def _set_status(self, **fields: object) -> None:
        self.status = {**self.status, **fields}
        self._pod.changed.set()


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
