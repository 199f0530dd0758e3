"""All sections together, and the order in which their sources count."""

import os
import re
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from binwright.protocol.selection import LANDING_SUFFIX, METADATA_SUFFIX, Selection
from binwright.runtime.settings.brokers import BrokerSettings
from binwright.runtime.settings.consumer import ConsumerSettings, LakeSettings, StagingSettings
from binwright.runtime.settings.controller import ControllerSettings, HealthSettings
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.runtime.settings.kubernetes import KubernetesSettings
from binwright.runtime.settings.monitor import MonitorSettings
from binwright.runtime.settings.scaler import ScalerSettings
from binwright.runtime.settings.section import TopicPattern
from binwright.runtime.settings.steering import SteeringSettings

FILE_VARIABLE = "BINWRIGHT_SETTINGS"
NEEDS_SUFFIX = ".needs"  # behind the name of the metrics topic
STAGING_INTERVALS_S, FRESHNESS_SHARE = (0.5, 3.0), 0.3


class Settings(BaseSettings):
    """The settings of all three services."""

    model_config = SettingsConfigDict(
        env_prefix="BINWRIGHT_",
        env_nested_delimiter="__",
        extra="forbid",
        frozen=True,
    )

    group: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,200}$")] = "binwright"
    """Name of the group: of its offsets, its topic GROUP.metadata, and its app ids in tables."""
    topics: tuple[Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,249}$")], ...] = ()
    """Topics that are measured and landed; one table each."""
    topic_patterns: tuple[TopicPattern, ...] = ()
    """Regular expressions: every topic whose whole name matches one is landed, later ones too."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Lowest level of log events, on standard error."""
    log_format: Literal["console", "json"] = "console"
    """Format of log events: readable lines, or JSON."""
    kafka: KafkaSettings = KafkaSettings()
    """The connection to Kafka."""
    monitor: MonitorSettings = MonitorSettings()
    controller: ControllerSettings = ControllerSettings()
    brokers: BrokerSettings = BrokerSettings()
    """When the balancer proposes to move replicas between Kafka's brokers."""
    kubernetes: KubernetesSettings = KubernetesSettings()
    """Where consumers run, with the fleet `kubernetes`."""
    scaler: ScalerSettings = ScalerSettings()
    """Groups of ordinary consumers that are scaled."""
    consumer: ConsumerSettings = ConsumerSettings()
    staging: StagingSettings = StagingSettings()
    """Where consumers stage rows for the tables' writers."""
    lake: LakeSettings = LakeSettings()
    steering: SteeringSettings = SteeringSettings()
    """Ordinary consumer groups that `binwright steer` steers."""
    health: HealthSettings = HealthSettings()
    """The HTTP server for probes and metrics."""

    @property
    def metadata_topic(self) -> str:
        """Return the name of the group's metadata topic."""
        return self.group + METADATA_SUFFIX

    @property
    def landing_topic(self) -> str:
        """Return the name of the topic in which consumers announce staged files."""
        return self.group + LANDING_SUFFIX

    @property
    def needs_topic(self) -> str:
        """Return the name of the topic in which controllers publish what their groups need."""
        return self.monitor.topic + NEEDS_SUFFIX

    @property
    def landed_topics(self) -> Selection | None:
        """Return the topics that the group lands; None: all that are measured."""
        if not (self.topics or self.topic_patterns):
            return None
        return Selection(
            topics=frozenset(self.topics),
            patterns=tuple(map(re.compile, self.topic_patterns)),
            excluded=frozenset({self.monitor.topic, self.needs_topic}),
        )

    @property
    def staging_path(self) -> str:
        """Return the directory or prefix of staged files; it has one directory for each topic."""
        return self.staging.path or f"{self.lake.path.rstrip('/')}/_staging/{self.group}"

    @property
    def staging_interval_s(self) -> float:
        """Return the age at which rows are staged, s."""
        lowest, highest = STAGING_INTERVALS_S
        wanted = FRESHNESS_SHARE * self.lake.freshness_s
        return self.consumer.batch_wait_s or min(max(wanted, lowest), highest)

    @field_validator("topics")
    @classmethod
    def _topics_are_distinct(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if twice := sorted({topic for topic in value if value.count(topic) > 1}):
            raise ValueError(f"named twice: {', '.join(twice)}")
        return value

    @model_validator(mode="after")
    def _namespaces_are_of_objects(self) -> Self:
        if self.kubernetes.namespaces and not (self.kubernetes.groups or self.scaler.objects):
            raise ValueError(
                "kubernetes.namespaces is for objects: it needs kubernetes.groups = true or "
                "scaler.objects = true"
            )
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments first, then the environment, then the file."""
        del dotenv_settings, file_secret_settings
        path = os.environ.get(FILE_VARIABLE)
        file = (TomlConfigSettingsSource(settings_cls, Path(path)),) if path else ()
        return (init_settings, env_settings, *file)
