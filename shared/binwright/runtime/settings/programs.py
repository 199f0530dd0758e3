"""What programs read: the values of every program, to which each adds its own.

A program checks the tables that it reads and passes over those of the others: a typo there is not
its fault. A table or value that no program knows is refused.
"""

import os
from pathlib import Path
from typing import Any, Literal

from pydantic import field_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from binwright.protocol.names import RESERVED, GroupName, TopicName
from binwright.protocol.patterns import compile_patterns
from binwright.protocol.section import TopicPatterns, check_distinct
from binwright.protocol.selection import Selection
from binwright.runtime.settings.health import HealthSettings
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.runtime.settings.monitor import MonitorSettings

PREFIX = "BINWRIGHT_"
FILE_VARIABLE = f"{PREFIX}SETTINGS"
NEEDS_SUFFIX = ".needs"  # behind the name of the metrics topic

EVERY_NAME = frozenset(
    [
        "brokers",
        "consumer",
        "controller",
        "exclude_topic_patterns",
        "group",
        "health",
        "kafka",
        "kubernetes",
        "lake",
        "log_format",
        "log_level",
        "monitor",
        "registry",
        "scaler",
        "staging",
        "tables",
        "topic_patterns",
        "topics",
        "traces",
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

    group: GroupName = "binwright"
    """Name of the group: of its offsets, its topics GROUP.metadata and so on, its staged files;
    tables name it as their owner."""
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
        arguments = getattr(init_settings, "init_kwargs", {}).keys()
        if arguments >= settings_cls.model_fields.keys():
            return (init_settings,)  # all are given
        path = os.environ.get(FILE_VARIABLE)
        file = (_OwnTables(settings_cls, Path(path)),) if path else ()
        return (init_settings, env_settings, *file)


class TopicSettings(ProgramSettings):
    """Which topics there are to measure and to land: what the monitor reads."""

    topics: tuple[TopicName, ...] = ()
    """Topics that are measured and landed; one table each, unless `tables` gives them others."""
    topic_patterns: TopicPatterns = ()
    """Regular expressions: every topic whose whole name matches one is landed, later ones too."""
    exclude_topic_patterns: TopicPatterns = ()
    """Regular expressions: what matches one is landed only if `topics` names it."""

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
            patterns=compile_patterns(self.topic_patterns),
            excluded=frozenset({self.monitor.topic, self.needs_topic}),
            excluded_patterns=compile_patterns(self.exclude_topic_patterns),
        )

    @field_validator("topics")
    @classmethod
    def _topics_are_distinct(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        check_distinct(value)
        if reserved := sorted(RESERVED & set(value)):
            raise ValueError(f"directories in a lake have these names: {', '.join(reserved)}")
        return value
