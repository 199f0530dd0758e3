"""The scaler as a process: `python -m binwright.scaler`."""

import contextlib
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from binwright.kafka.client import ClusterClient
from binwright.kafka.control_records import METRICS_CONFIG
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.kafka.election import lead_in_turn
from binwright.protocol.errors import SettingsError
from binwright.runtime.health import Health, serve_health
from binwright.runtime.run import background_tasks, must_not_end
from binwright.runtime.serve import run_service
from binwright.runtime.settings import Settings
from binwright.scaler.ends import MeasuredEnds, TopicEnds
from binwright.scaler.groups.offsets import GroupOffsets
from binwright.scaler.passes import Scaler
from binwright.scaler.targets import Target, Targets

Source = Callable[[], Mapping[str, Target]]


@dataclass
class Sources:
    """Where targets come from, and what runs while they are scaled."""

    acting: list[Source] = field(default_factory=list)  # scaled by the leader
    answering: list[Source] = field(default_factory=list)  # KEDA's: every scaler answers for them
    work: list[Callable[[], Coroutine[Any, Any, None]]] = field(default_factory=list)  # leader's

    @staticmethod
    def merged(sources: Sequence[Source]) -> Targets:
        """Return the targets of all sources; their keys differ."""
        return {key: target for source in sources for key, target in source().items()}


@contextlib.asynccontextmanager
async def open_sources(
    settings: Settings,
    found: Sources,
    hurry: Callable[[], None],
    hurry_answering: Callable[[], None],
) -> AsyncIterator[None]:
    """Add to `found` the groups that settings, objects and KEDA name; they are kept meanwhile."""
    chosen = settings.scaler
    async with contextlib.AsyncExitStack() as stack:
        if chosen.groups:
            from binwright.scaler.local import local_targets  # noqa: PLC0415 - as below

            local = local_targets(settings)
            found.acting.append(lambda: local.targets)
            found.work.append(local.run)
        if chosen.objects:
            # Importing its client takes a second and 45 MB.
            from binwright.scaler.objects.setup import scaled_objects  # noqa: PLC0415

            objects = await stack.enter_async_context(scaled_objects(settings, hurry))
            found.acting.append(lambda: objects.targets)
            found.work.append(objects.follow)
        if chosen.keda_port is not None:
            try:
                from binwright.scaler.keda.server import serve_keda  # noqa: PLC0415
            except ImportError as exc:
                text = f"scaler.keda_port needs gRPC ({exc}): install binwright[keda]"
                raise SettingsError(text) from exc
            external = await stack.enter_async_context(serve_keda(chosen, hurry_answering))
            found.answering.append(external.current)
        yield


async def scale(settings: Settings) -> None:
    """Scale groups, or stand by, until cancelled.

    Raises:
        SettingsError: The settings name no groups.
        BrokerUnavailable: Kafka cannot be reached at the start.
    """
    chosen = settings.scaler
    if not (chosen.groups or chosen.objects or chosen.keda_port):
        raise SettingsError("scaler: set objects, groups or keda_port; there is nothing to scale")
    async with (
        serve_health(settings.health) as health,
        KafkaControlTopics(settings.kafka, read_only=True) as bus,
        ClusterClient(settings.kafka, answer_s=chosen.answer_s) as cluster,
    ):
        await bus.ensure(settings.monitor.topic, 1, METRICS_CONFIG)
        measured = MeasuredEnds(bus, settings.monitor.topic)
        async with background_tasks(must_not_end(measured.run())):
            await _scale(settings, cluster, measured, health)


async def _scale(
    settings: Settings, cluster: ClusterClient, measured: MeasuredEnds, health: Health
) -> None:
    chosen = settings.scaler
    sources = Sources()

    def scaler(of: Callable[[], Sequence[Source]], loop: str) -> Scaler:
        made = Scaler(
            lambda: Sources.merged(of()),
            GroupOffsets(cluster, answer_s=chosen.answer_s),
            TopicEnds(cluster, measured, answer_s=chosen.answer_s, window_s=chosen.rate_window_s),
            chosen.period_s,
            chosen.wake_s,
            lambda: health.beat(loop),
            lambda: health.end(loop),
        )
        health.collectors.append(made.samples)
        return made

    acting = scaler(lambda: sources.acting, "scaling")
    answering = scaler(lambda: sources.answering, "answering")

    async def lead() -> None:
        async with background_tasks(*(must_not_end(work()) for work in sources.work)):
            await acting.run()

    async with open_sources(settings, sources, acting.hurry, answering.hurry):
        work = [must_not_end(answering.run())] if sources.answering else []
        async with background_tasks(*work):
            group = f"{settings.group}.scalers"
            await lead_in_turn(settings.kafka, health, settings.monitor.topic, group, lead)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the scaler with the settings of the file and the environment."""
    return run_service("controller.scaler", __doc__, scale, arguments)


if __name__ == "__main__":
    sys.exit(main())
