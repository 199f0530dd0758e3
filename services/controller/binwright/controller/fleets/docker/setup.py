"""Builds the fleet of containers from settings."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import structlog

from binwright.controller.fleets.docker.engine import Engine, Obj, open_engine
from binwright.controller.fleets.docker.fleet import DockerFleet, Timing
from binwright.controller.fleets.docker.spec import ContainerSpec
from binwright.runtime.run import background_tasks, must_not_end
from binwright.runtime.settings import Settings, settings_environment

log = structlog.get_logger()

COMPOSE_PROJECT_LABEL = "com.docker.compose.project"
DEFAULT_PROJECT = "binwright"
PASSED_ON = (
    "GROUP",
    "TOPICS",
    "LOG_",
    "KAFKA__",
    "CONSUMER__",
    "STAGING__",
    "LAKE__",
    "HEALTH__",
    "CONTROLLER__MAX_SLOTS",
)
"""The settings that a consumer reads: only a change of these replaces containers."""


@contextlib.asynccontextmanager
async def docker_fleet(settings: Settings) -> AsyncIterator[DockerFleet]:
    """Give the fleet of containers that these settings describe; it is maintained meanwhile.

    Raises:
        SettingsError: There is no engine, or it may not be used.
        EngineUnavailable: The engine does not respond.
    """
    chosen = settings.docker
    async with open_engine(chosen.socket, chosen.request_timeout_s) as engine:
        spec = container_spec(settings, await own_container(engine))
        fleet = DockerFleet(
            engine, spec, settings.controller.max_slots, Timing(pull_s=chosen.pull_timeout_s)
        )
        log.info("fleet.opened", image=spec.image, network=spec.network, project=spec.project)
        try:
            async with background_tasks(must_not_end(fleet.run())):
                yield fleet
        finally:
            task = asyncio.current_task()
            cancelled = task is not None and task.cancelling()  # after an error consumers stay
            if cancelled and chosen.ends_with_controller:
                await fleet.close()


async def own_container(engine: Engine) -> Obj | None:
    """Return the container that this process runs in; None if it is not one of this engine."""
    name = socket.gethostname()
    found = await engine.container(name)
    return found if found and found["Config"]["Hostname"] == name else None


def container_spec(settings: Settings, own: Obj | None) -> ContainerSpec:
    """Return what consumers are made from; unset values default to our own container's."""
    chosen = settings.docker
    labels = (own["Config"].get("Labels") or {}) if own else {}
    prefixes = tuple(f"BINWRIGHT_{name}" for name in PASSED_ON)
    ours = {n: v for n, v in settings_environment(settings).items() if n.startswith(prefixes)}
    added = dict(each.split("=", 1) for each in chosen.environment)
    return ContainerSpec(
        project=chosen.project or labels.get(COMPOSE_PROJECT_LABEL) or DEFAULT_PROJECT,
        group=settings.group,
        image=chosen.image,
        network=chosen.network or (own["HostConfig"]["NetworkMode"] if own else None),
        volumes=chosen.volumes,
        environment={**ours, **added},
        memory_bytes=chosen.memory_bytes,
        cpus=chosen.cpus,
        grace_s=settings.consumer.drain_timeout_s + 10,
    )
