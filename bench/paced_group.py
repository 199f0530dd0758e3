"""A group whose consumers read no faster than a pace, on a broker and a Spark that run; watched."""

import contextlib
import os
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from tests.chaos.pace import PACE_VARIABLE

from binwright.kafka.control_records import METADATA_CONFIG, METRICS_CONFIG
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.local.stack import Servers, services
from binwright.look.follower import watch_group
from binwright.look.group_view import GroupView
from binwright.runtime.run import background_tasks
from binwright.runtime.settings.group import Settings, load_settings

HOOKS, ROOT = Path(__file__).parent / "pace", Path(__file__).parents[1]


def paced(bytes_per_s: float) -> Mapping[str, str]:
    """Return the variables by which each consumer reads no more than this, bytes of memory."""
    return {
        PACE_VARIABLE: str(bytes_per_s),
        "PYTHONPATH": os.pathsep.join([str(HOOKS), str(ROOT)]),
    }


def settings_of(
    name: str, ran: Servers, directory: Path, *, window_s: float, **controller: Any
) -> Settings:
    """Return the settings of a group of one topic, which has its name, and plans each ten seconds.

    Args:
        name: The group's.
        ran: Kafka and Spark.
        directory: Of its tables and its consumers' logs.
        window_s: The monitor's.
        controller: Its other settings.
    """
    return load_settings(
        group=name,
        topics=(name,),
        kafka={"bootstrap_servers": ran.bootstrap_servers},
        lake={"path": str(directory / "lake"), "spark": ran.spark, "token_file": ran.token_file},
        monitor={"topic": f"{name}.metrics", "window_s": window_s, "groups": False},
        controller={"replan_interval_s": 10.0, "process_logs": directory, **controller},
    )


@contextlib.asynccontextmanager
async def paced_group(
    settings: Settings, directory: Path, view: GroupView, partitions: int
) -> AsyncIterator[None]:
    """Run a group of one topic, which is made, with `view` following it."""
    async with KafkaControlTopics(settings.kafka) as bus:
        await bus.ensure(settings.metadata_topic, 1, METADATA_CONFIG)
        await bus.ensure(settings.monitor.topic, 1, METRICS_CONFIG)
        await bus.ensure(settings.topics[0], partitions, {})
        watching = watch_group(bus, settings.metadata_topic, settings.monitor.topic, view)
        async with (
            services(settings, directory) as stack,
            background_tasks(watching, stack.wait_for_failure()),
        ):
            yield
