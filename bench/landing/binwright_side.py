"""binwright as it is: monitor, controller and consumers as processes, on a Spark given to it."""

import contextlib
import os
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.landing.forms import BYTES, Form
from binwright.kafka.control_records import METADATA_CONFIG, METRICS_CONFIG
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.local.stack import Stack, services
from binwright.runtime.run import background_tasks
from binwright.runtime.settings.group import Settings, load_settings
from binwright.runtime.settings.kafka import KafkaSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOptions:
    """A group to be run."""

    name: str
    topics: Sequence[str]
    limit: float = 1e9  # bytes/s that one consumer sustains
    max_consumers: int = 1
    freshness_s: float = 5.0
    compact_files: int = 0  # the age of rewritten rows is unknown
    form: Form = BYTES


def settings(group: GroupOptions, kafka: KafkaSettings, spark: str, directory: Path) -> Settings:
    """Return the group's settings."""
    return load_settings(
        group=group.name,
        topics=tuple(group.topics),
        kafka=kafka.model_dump(exclude_none=True),
        lake={
            "path": str(directory / "lake"),
            "spark": spark,
            "freshness_s": group.freshness_s,
            "compact_files": group.compact_files,
        },
        tables=[{"topics": group.topics, **group.form.entry}] if group.form.entry else [],
        registry={"url": group.form.registry} if group.form.registry else {},
        monitor={"window_s": 8.0, "topic": f"{group.name}.metrics"},
        controller={
            "limit_bytes_per_s": group.limit,
            "process_logs": directory,
            "max_slots": group.max_consumers,
        },
    )


@contextlib.asynccontextmanager
async def running(chosen: Settings, directory: Path) -> AsyncIterator[Stack]:
    """Run the services; their processes are children of this one."""
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)  # this checkout, whichever is installed
    async with KafkaControlTopics(chosen.kafka) as bus:
        await bus.ensure(chosen.metadata_topic, 1, METADATA_CONFIG)
        await bus.ensure(chosen.monitor.topic, 1, METRICS_CONFIG)
    async with services(chosen, directory) as stack, background_tasks(stack.wait_for_failure()):
        yield stack
