"""From settings to a fleet of containers."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import structlog

from binwright.controller.docker.engine import Engine, Obj, opened
from binwright.controller.docker.shape import Shape
from binwright.controller.fleets.docker import DockerFleet, Pace
from binwright.shell.run import endless, meanwhile
from binwright.shell.settings import Settings, settings_environment

log = structlog.get_logger()

PROJECT_LABEL = "com.docker.compose.project"
DEFAULT_REALM = "binwright"
TOLD = (
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
"""What a consumer reads of the settings: a change of the rest makes no new containers."""


@contextlib.asynccontextmanager
async def docker_fleet(settings: Settings) -> AsyncIterator[DockerFleet]:
    """Give the fleet of containers that these settings describe, and keep it meanwhile.

    Raises:
        SettingsError: There is no engine, or it may not be used.
        EngineUnavailable: The engine does not answer.
    """
    chosen = settings.docker
    async with opened(chosen.socket, chosen.request_timeout_s) as engine:
        shape = shaped(settings, await own_container(engine))
        fleet = DockerFleet(
            engine, shape, settings.controller.max_slots, Pace(pull_s=chosen.pull_timeout_s)
        )
        log.info("fleet.opened", image=shape.image, network=shape.network, realm=shape.realm)
        try:
            async with meanwhile(endless(fleet.run())):
                yield fleet
        finally:
            task = asyncio.current_task()
            asked = task is not None and task.cancelling()  # who fails leaves consumers at work
            if asked and chosen.ends_with_controller:
                await fleet.close()


async def own_container(engine: Engine) -> Obj | None:
    """Return the container that we run in; None if that is none of this engine's."""
    name = socket.gethostname()
    found = await engine.container(name)
    return found if found and found["Config"]["Hostname"] == name else None


def shaped(settings: Settings, own: Obj | None) -> Shape:
    """Return what consumers are made from: where nothing is set, as our own container is."""
    chosen = settings.docker
    labels = (own["Config"].get("Labels") or {}) if own else {}
    prefixes = tuple(f"BINWRIGHT_{name}" for name in TOLD)
    told = {n: v for n, v in settings_environment(settings).items() if n.startswith(prefixes)}
    given = dict(each.split("=", 1) for each in chosen.environment)
    return Shape(
        realm=chosen.realm or labels.get(PROJECT_LABEL) or DEFAULT_REALM,
        group=settings.group,
        image=chosen.image,
        network=chosen.network or (own["HostConfig"]["NetworkMode"] if own else None),
        volumes=chosen.volumes,
        environment={**told, **given},
        memory_bytes=chosen.memory_bytes,
        cpus=chosen.cpus,
        grace_s=settings.consumer.drain_timeout_s + 10,
    )
