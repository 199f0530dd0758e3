"""The scaler as a process: `python -m binwright.scaler`."""

import contextlib
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from binwright.kafka.client import ClusterClient
from binwright.kafka.control_records import METRICS_CONFIG
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.kafka.election import lead_in_turn
from binwright.kafka.own_topics import ensure_own
from binwright.protocol.errors import SettingsError
from binwright.protocol.selection import SCALERS_SUFFIX
from binwright.runtime.health import Health, serve_health
from binwright.runtime.metrics import Sample
from binwright.runtime.run import background_tasks, must_not_end
from binwright.runtime.serve import run_service
from binwright.scaler.assigning import Assigner, Plans
from binwright.scaler.ends import MeasuredEnds, TopicEnds, look_closely
from binwright.scaler.groups import ConsumerGroups
from binwright.scaler.kafka_plans import KafkaPlans
from binwright.scaler.passes import Scaler, Targets
from binwright.scaler.settings import ScalerProgramSettings

TargetSource = Callable[[], Targets]


@dataclass
class TargetSources:
    """Where targets come from, and what runs while they are scaled."""

    leader: list[TargetSource] = field(default_factory=list)  # scaled by the leader
    keda: list[TargetSource] = field(default_factory=list)  # every scaler answers for them
    work: list[Callable[[], Coroutine[Any, Any, None]]] = field(default_factory=list)  # leader's
    samples: list[Callable[[], Iterable[Sample]]] = field(default_factory=list)

    @staticmethod
    def merged(sources: Sequence[TargetSource]) -> Targets:
        """Return the targets of all sources; their keys differ."""
        return {key: target for source in sources for key, target in source().items()}


@contextlib.asynccontextmanager
async def open_sources(
    settings: ScalerProgramSettings,
    sources: TargetSources,
    request_pass: Callable[[], None],
    request_keda_pass: Callable[[], None],
) -> AsyncIterator[None]:
    """Add the groups that settings, objects and KEDA name; they are kept while the body runs."""
    scaler = settings.scaler
    async with contextlib.AsyncExitStack() as stack:
        if scaler.groups:
            from binwright.scaler.local import local_targets  # noqa: PLC0415 - as below

            local = local_targets(settings)
            sources.leader.append(lambda: local.targets)
            if local.workloads:
                sources.work.append(local.run)
        if scaler.objects:
            # Importing its client takes a second and 45 MB.
            from binwright.scaler.objects.objects import scaled_objects  # noqa: PLC0415

            objects = await stack.enter_async_context(scaled_objects(settings, request_pass))
            sources.leader.append(lambda: objects.targets)
            sources.work.append(objects.follow)
            sources.samples.append(objects.samples)
        if scaler.keda_port is not None:
            try:
                from binwright.scaler.keda.server import serve_keda  # noqa: PLC0415
            except ImportError as exc:
                text = f"scaler.keda_port needs gRPC ({exc}): install binwright[keda]"
                raise SettingsError(text) from exc
            triggers = await stack.enter_async_context(serve_keda(scaler, request_keda_pass))
            sources.keda.append(triggers.current)
        yield


async def scale(settings: ScalerProgramSettings) -> None:
    """Scale groups, or stand by, until cancelled.

    Raises:
        SettingsError: The settings name no groups.
        BrokerUnavailable: Kafka cannot be reached at the start.
    """
    scaler = settings.scaler
    if not (scaler.groups or scaler.objects or scaler.keda_port):
        raise SettingsError("scaler: set objects, groups or keda_port; there is nothing to scale")
    async with (
        serve_health(settings.health, settings.kafka.ssl_certificate_file) as health,
        KafkaControlTopics(settings.kafka, read_only=True) as bus,
        ClusterClient(settings.kafka, broker_timeout_s=scaler.broker_timeout_s) as cluster,
        KafkaPlans(settings.kafka, scaler) as plans,
    ):
        await ensure_own(bus, settings.monitor.topic, 1, METRICS_CONFIG)
        measured = MeasuredEnds(bus, settings.monitor.topic)
        async with background_tasks(must_not_end(measured.run())):
            await _scale(settings, cluster, measured, plans, health)


async def _scale(
    settings: ScalerProgramSettings,
    cluster: ClusterClient,
    measured: MeasuredEnds,
    plans: Plans,
    health: Health,
) -> None:
    sources = TargetSources()

    def scaler(source: Callable[[], Sequence[TargetSource]], loop: str) -> Scaler:
        config = settings.scaler
        timeout_s = config.broker_timeout_s
        groups = ConsumerGroups(cluster, timeout_s=timeout_s)
        return Scaler(
            lambda: TargetSources.merged(source()),
            groups,
            TopicEnds(cluster, measured, timeout_s=timeout_s, window_s=config.rate_window_s),
            config.period_s,
            config.zero_poll_s,
            lambda: health.beat(loop),
            lambda: health.end(loop),
            Assigner(plans) if loop == "scaling" else None,
            partial(look_closely, cluster),
        )

    leader = scaler(lambda: sources.leader, "scaling")
    keda = scaler(lambda: sources.keda, "answering")
    health.collectors.append(keda.group_samples)

    async def lead() -> None:
        # The passes are the leader's: one process has one number of them.
        with health.collecting(leader.samples):
            async with background_tasks(*(must_not_end(work()) for work in sources.work)):
                await leader.run()

    async with open_sources(settings, sources, leader.request_pass, keda.request_pass):
        health.collectors += sources.samples
        work = [must_not_end(keda.run())] if sources.keda else []
        async with background_tasks(*work):
            group = settings.group + SCALERS_SUFFIX
            await lead_in_turn(settings.kafka, health, settings.monitor.topic, group, lead)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the scaler with the settings of the file and the environment."""
    return run_service("scaler", __doc__, scale, ScalerProgramSettings, arguments)


if __name__ == "__main__":
    sys.exit(main())
