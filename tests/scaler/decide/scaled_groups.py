"""Groups for the tests of the machine."""

from collections.abc import Sequence
from typing import Any

from binwright.protocol.model import TopicPartition
from binwright.scaler.decide.config import ScaledGroupSettings
from binwright.scaler.decide.lags import Work
from binwright.scaler.decide.policy import PartitionLoad
from binwright.scaler.decide.sizing import (
    GroupSnapshot,
    ScalingState,
    Verdict,
    WorkloadStatus,
    decide,
)

CONFIG = ScaledGroupSettings(
    group="orders", min_replicas=1, max_replicas=10, records_per_s=100.0, commit_interval_s=0.0
)
ZERO = ScaledGroupSettings(
    group="orders", min_replicas=0, max_replicas=10, records_per_s=100.0, commit_interval_s=0.0
)


def changed(config: ScaledGroupSettings, **more: Any) -> ScaledGroupSettings:
    """Return the settings with some of them changed, and checked."""
    return ScaledGroupSettings.model_validate(config.model_dump(exclude_unset=True) | more)


def work(rates: Sequence[float], lags: Sequence[float] | None = None, missing: int = 0) -> Work:
    lags = [0.0] * len(rates) if lags is None else lags
    return Work(
        loads={
            TopicPartition("t", n): PartitionLoad(rate, lag)
            for n, (rate, lag) in enumerate(zip(rates, lags, strict=True))
        },
        missing=missing,
    )


def step(
    config: ScaledGroupSettings,
    seen: Work,
    replicas: int,
    *,
    state: ScalingState | None = None,
    now_s: float = 1_000.0,
    members: int | None = None,
    **workload: Any,
) -> tuple[ScalingState, Verdict]:
    of = WorkloadStatus(**{"replicas": replicas, "ready": replicas, **workload})
    return decide(
        config,
        state or ScalingState(),
        GroupSnapshot(work=seen, workload=of, now_s=now_s, wall_s=0.0, members=members),
    )


def verdict(config: ScaledGroupSettings, seen: Work, replicas: int, **others: Any) -> Verdict:
    return step(config, seen, replicas, **others)[1]
