"""What programs read: the values of every program, and those of a group; each program adds its own.

A program checks the tables that it reads and passes over those of the others: a typo there is not
its fault. A table or value that no program knows is refused.
"""

import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from binwright.protocol.selection import LANDING_SUFFIX, METADATA_SUFFIX, Selection
from binwright.runtime.settings.consumer import ConsumerSettings, LakeSettings, StagingSettings
from binwright.runtime.settings.controller import ControllerSettings, HealthSettings
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.runtime.settings.monitor import MonitorSettings
from binwright.runtime.settings.section import TopicPattern, check_distinct

PREFIX = "BINWRIGHT_"
FILE_VARIABLE = f"{PREFIX}SETTINGS"
NEEDS_SUFFIX = ".needs"  # behind the name of the metrics topic
STAGING_INTERVALS_S, FRESHNESS_SHARE = (0.5, 3.0), 0.3

EVERY_NAME = frozenset(
    [
        "brokers",
        "consumer",
        "controller",
        "group",
        "health",
        "kafka",
        "kubernetes",
        "lake",
        "log_format",
        "log_level",
        "monitor",
        "scaler",
        "staging",
        "steering",
        "topic_patterns",
        "topics",
    ]
)
"""The tables and values of the file that some program reads."""


class _OwnTables(TomlConfigSettingsSource):
    """The file without what only other programs read."""

    def __call__(self) -> dict[str, Any]:
        own = self.settings_cls.model_fields
        return {n: v for n, v in super().__call__().items() if n in own or n not in EVERY_NAME}


class ProgramSettings(BaseSettings):
    """What every program reads."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_nested_delimiter="__",
        extra="forbid",
        frozen=True,
    )

    group: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,200}$")] = "binwright"
    """Name of the group: of its offsets, its topic GROUP.metadata, and its app ids in tables."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Lowest level of log events, on standard error."""
    log_format: Literal["console", "json"] = "console"
    """Format of log events: readable lines, or JSON."""
    kafka: KafkaSettings = KafkaSettings()
    """The connection to Kafka."""
    monitor: MonitorSettings = MonitorSettings()
    health: HealthSettings = HealthSettings()
    """The HTTP server for probes and metrics."""

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
        file = (_OwnTables(settings_cls, Path(path)),) if path else ()
        return (init_settings, env_settings, *file)


class TopicSettings(ProgramSettings):
    """Which topics there are to measure and to land: what the monitor reads."""

    topics: tuple[Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,249}$")], ...] = ()
    """Topics that are measured and landed; one table each."""
    topic_patterns: tuple[TopicPattern, ...] = ()
    """Regular expressions: every topic whose whole name matches one is landed, later ones too."""

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

    @field_validator("topics")
    @classmethod
    def _topics_are_distinct(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        check_distinct(value)
        return value


class Settings(TopicSettings):
    """The settings of a group: what its consumers read, and those who look at it."""

    controller: ControllerSettings = ControllerSettings()
    consumer: ConsumerSettings = ConsumerSettings()
    staging: StagingSettings = StagingSettings()
    """Where consumers stage rows for the tables' writers."""
    lake: LakeSettings = LakeSettings()

    @property
    def metadata_topic(self) -> str:
        """Return the name of the group's metadata topic."""
        return self.group + METADATA_SUFFIX

    @property
    def landing_topic(self) -> str:
        """Return the name of the topic in which consumers announce staged files."""
        return self.group + LANDING_SUFFIX

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
