"""A Prometheus that scrapes services of this machine and evaluates the shipped rules."""

import asyncio
import math
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from tests.programs import ROOT
from tests.prometheus_programs import prometheus
from tools.board_image import ask

from binwright.local.child import Child, Command
from binwright.local.server import HOST, Server, reserve_port

RULES = ROOT / "deploy" / "alerts" / "rules.yaml"
INTERVAL_S = 2.0  # of scrapes and evaluations: a default installation takes 15 s to 60 s
READY_S, GRACE_S = 60.0, 15.0

Labels = Mapping[str, str]


class PrometheusServer(Server):
    """One server, and what it knows."""

    def __init__(self, command: Command, port: int) -> None:
        self.url = f"http://{HOST}:{port}"

        async def serving(child: Child) -> None:
            await child.wait_until_ready(self._is_ready, deadline_s=READY_S)

        super().__init__(command, until_ready=serving, grace_s=GRACE_S)

    async def _is_ready(self) -> bool:
        try:
            async with (
                aiohttp.ClientSession() as client,
                client.get(f"{self.url}/-/ready") as response,
            ):
                return response.status == 200
        except aiohttp.ClientError:
            return False

    async def firing(self) -> list[Labels]:
        """Return the labels of each alert that fires, its name as `alertname`."""
        found = await self._ask("alerts")
        return [each["labels"] for each in found["alerts"] if each["state"] == "firing"]

    async def targets_up(self) -> Mapping[str, bool]:
        """Return each target's address, and whether its last scrape succeeded."""
        found = await self._ask("targets")
        return {t["labels"]["instance"]: t["health"] == "up" for t in found["activeTargets"]}

    async def has_values(self, query: str, since_s: float, until_s: float) -> bool:
        """Tell whether a query has had a finite value in a span of wall-clock time."""
        span = {"start": str(since_s), "end": str(until_s), "step": f"{INTERVAL_S:g}s"}
        found = await self._ask("query_range", {"query": query, **span})
        return any(
            math.isfinite(float(value)) for line in found["result"] for _, value in line["values"]
        )

    async def _ask(self, what: str, parameters: Mapping[str, str] | None = None) -> Any:
        return await ask(self.url, what, parameters or {})


@asynccontextmanager
async def run_prometheus(
    directory: Path, jobs: Mapping[str, Sequence[int]]
) -> AsyncIterator[PrometheusServer]:
    """Run a server in this directory that scrapes these ports of this machine, by job."""
    program = await asyncio.to_thread(prometheus)
    configuration = {
        "global": {
            "scrape_interval": f"{INTERVAL_S:g}s",
            "scrape_timeout": f"{INTERVAL_S:g}s",
            "evaluation_interval": f"{INTERVAL_S:g}s",
        },
        "rule_files": [str(RULES)],
        "scrape_configs": [
            {
                "job_name": job,
                "static_configs": [{"targets": [f"{HOST}:{port}" for port in ports]}],
            }
            for job, ports in jobs.items()
        ],
    }
    file = directory / "prometheus.yaml"
    file.write_text(yaml.safe_dump(configuration))
    with reserve_port() as reserved:
        port = reserved
    command = Command(
        title="Prometheus",
        argv=(
            str(program),
            f"--config.file={file}",
            f"--storage.tsdb.path={directory / 'data'}",
            f"--web.listen-address={HOST}:{port}",
        ),
        directory=directory,
        log=directory / "prometheus.log",
        environment=dict(os.environ),
    )
    server = PrometheusServer(command, port)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()
