"""ScaledObjects with KEDA's own Kafka trigger become ScaledGroups."""

from typing import Any

import pytest

from binwright.protocol.errors import SettingsError
from binwright.scaler.keda.translation import translate


def trigger(kind: str = "kafka", **metadata: str) -> dict[str, Any]:
    wanted = {"bootstrapServers": "kafka:9092", "consumerGroup": "orders-billing", **metadata}
    return {"type": kind, "metadata": wanted}


def scaled_object(*triggers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {
        "kind": "ScaledObject",
        "metadata": {"name": "billing", "namespace": "shop"},
        "spec": {"scaleTargetRef": {"name": "billing"}, "triggers": list(triggers), **spec},
    }


def test_workload_bounds_topics_start_and_idle_time_are_taken() -> None:
    found = translate(
        scaled_object(
            trigger(topic="orders", lagThreshold="50", offsetResetPolicy="earliest"),
            trigger("apache-kafka", topic="clicks", lagThreshold="20"),
            minReplicaCount=1,
            maxReplicaCount=12,
            cooldownPeriod=60,
            pollingInterval=5,
        )
    )
    assert (found.group, found.name, found.namespace) == ("orders-billing", "billing", "shop")
    assert found.spec == {
        "group": "orders-billing",
        "workload": {"kind": "Deployment", "name": "billing"},
        "minReplicas": 1,
        "maxReplicas": 12,
        "idleSeconds": 60,
        "topics": ["clicks", "orders"],
        "startsAt": "earliest",
    }
    assert (found.lag_threshold, found.left_out) == (20.0, ())


def test_what_is_not_given_has_keda_s_default() -> None:
    found = translate(scaled_object(trigger()))
    bounds = {name: found.spec[name] for name in ("minReplicas", "maxReplicas", "idleSeconds")}
    assert bounds == {"minReplicas": 0, "maxReplicas": 100, "idleSeconds": 300}
    assert "topics" not in found.spec
    assert found.lag_threshold == 10.0


def test_a_lag_that_is_none_and_a_pause_are_taken() -> None:
    paused = scaled_object(trigger(activationLagThreshold="5"))
    paused["metadata"]["annotations"] = {"autoscaling.keda.sh/paused": "true"}
    found = translate(paused)
    assert (found.spec["idleLag"], found.spec["paused"]) == (5, True)


def test_what_has_no_counterpart_is_named() -> None:
    found = translate(
        scaled_object(
            trigger(allowIdleConsumers="true", tls="enable", saslType="plaintext"),
            trigger("cron", start="0 8 * * *"),
            fallback={"replicas": 4},
        )
    )
    assert found.left_out == ("allowIdleConsumers=true", "fallback", "trigger cron")


@pytest.mark.parametrize(
    ("obj", "fault"),
    [
        (scaled_object(trigger("cron")), "one consumer group"),
        (scaled_object(trigger(), trigger(consumerGroup="other")), "one consumer group"),
        (scaled_object(trigger(consumerGroup="")), "one consumer group"),
        ({"kind": "ScaledObject"}, "one consumer group"),
        (scaled_object(trigger(lagThreshold="many")), "ScaledObject billing: lagThreshold"),
        (scaled_object(trigger(activationLagThreshold="x")), "ScaledObject billing"),
        (scaled_object(trigger(), minReplicaCount=9, maxReplicaCount=3), "ScaledObject billing"),
        (scaled_object(trigger(offsetResetPolicy="middle")), "startsAt"),
    ],
)
def test_what_cannot_be_translated_is_refused_by_name(obj: dict[str, Any], fault: str) -> None:
    with pytest.raises(SettingsError, match=fault):
        translate(obj)
