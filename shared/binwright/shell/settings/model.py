"""All sections together, and where their values come from."""

import os
import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from binwright.core.selection import LANDING_SUFFIX, METADATA_SUFFIX, Selection
from binwright.shell.settings.consumer import ConsumerSettings, LakeSettings, StagingSettings
from binwright.shell.settings.controller import ControllerSettings, HealthSettings
from binwright.shell.settings.fleets import DockerSettings, KubernetesSettings
from binwright.shell.settings.kafka import KafkaSettings
from binwright.shell.settings.monitor import MonitorSettings
from binwright.shell.settings.section import TopicPattern

FILE_VARIABLE = "BINWRIGHT_SETTINGS"
NEEDS_SUFFIX = ".needs"  # behind the name of the metrics topic
STAGING_INTERVALS_S, FRESHNESS_SHARE = (0.5, 3.0), 0.3


class Settings(BaseSettings):
    """Everything the three services need to know."""

    model_config = SettingsConfigDict(
        env_prefix="BINWRIGHT_",
        env_nested_delimiter="__",
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
    )

    group: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,200}$")] = "binwright"
    """Names the consumers' offsets, the topic GROUP.metadata, and the app ids in the tables."""
    topics: tuple[Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,249}$")], ...] = ()
    """What is measured and landed; one table each."""
    topic_patterns: tuple[TopicPattern, ...] = ()
    """The same of every topic, also a later one, whose whole name fits one of these expressions."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """What is logged, to stderr."""
    log_format: Literal["console", "json"] = "console"
    """For people, or for machines."""
    kafka: KafkaSettings = KafkaSettings()
    """How to reach Kafka."""
    monitor: MonitorSettings = MonitorSettings()
    controller: ControllerSettings = ControllerSettings()
    docker: DockerSettings = DockerSettings()
    """Where consumers run, with the fleet `docker`."""
    kubernetes: KubernetesSettings = KubernetesSettings()
    """Where consumers run, with the fleet `kubernetes`."""
    consumer: ConsumerSettings = ConsumerSettings()
    staging: StagingSettings = StagingSettings()
    """Where consumers put rows for the tables' writers."""
    lake: LakeSettings = LakeSettings()
    health: HealthSettings = HealthSettings()
    """Where probes ask whether a service lives and is ready."""

    @property
    def metadata_topic(self) -> str:
        """Return the group's hand-over topic."""
        return self.group + METADATA_SUFFIX

    @property
    def landing_topic(self) -> str:
        """Return the topic in which the group's consumers announce staged files."""
        return self.group + LANDING_SUFFIX

    @property
    def needs_topic(self) -> str:
        """Return the topic in which controllers say what their groups want measured."""
        return self.monitor.topic + NEEDS_SUFFIX

    @property
    def landed(self) -> Selection | None:
        """Return the topics that the group lands; None: whatever is measured."""
        if not (self.topics or self.topic_patterns):
            return None
        return Selection(
            topics=frozenset(self.topics),
            patterns=tuple(map(re.compile, self.topic_patterns)),
            never=frozenset({self.monitor.topic, self.needs_topic}),
        )

    @property
    def staging_path(self) -> str:
        """Return where staged files are, one directory for each topic."""
        return self.staging.path or f"{self.lake.path.rstrip('/')}/_staging/{self.group}"

    @property
    def staging_interval_s(self) -> float:
        """Return how old rows may be until they are staged."""
        lowest, highest = STAGING_INTERVALS_S
        wanted = FRESHNESS_SHARE * self.lake.freshness_s
        return self.consumer.batch_wait_s or min(max(wanted, lowest), highest)

    @field_validator("topics")
    @classmethod
    def _topics_are_once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if twice := sorted({topic for topic in value if value.count(topic) > 1}):
            raise ValueError(f"named twice: {', '.join(twice)}")
        return value

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
