"""What programs read: the values of every program, and those of a group; each program adds its own.

A program checks the tables that it reads and passes over those of the others: a typo there is not
its fault. A table or value that no program knows is refused.
"""

import os
from functools import cached_property
from pathlib import Path
from posixpath import normpath
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from binwright.protocol.names import RESERVED, GroupName, TopicName
from binwright.protocol.patterns import compile_patterns
from binwright.protocol.selection import (
    COMMANDS_SUFFIX,
    LANDING_SUFFIX,
    METADATA_SUFFIX,
    ORDERS_SUFFIX,
    Selection,
)
from binwright.runtime.settings.consumer import (
    LONGEST_WRITE,
    ConsumerSettings,
    LakeSettings,
    StagingSettings,
)
from binwright.runtime.settings.controller import ControllerSettings, HealthSettings
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.runtime.settings.monitor import MonitorSettings
from binwright.runtime.settings.registry import RegistrySettings
from binwright.runtime.settings.section import TopicPatterns, check_distinct
from binwright.runtime.settings.tables import TableSettings
from binwright.runtime.settings.targets import Target, Targets, check_tables
from binwright.runtime.settings.traces import TracesSettings
from binwright.runtime.storage_path import below

PREFIX = "BINWRIGHT_"
STAGING = "_staging"  # in lake.path
FILE_VARIABLE = f"{PREFIX}SETTINGS"
LATE_S, LATE_TARGETS = 60.0, 4
"""Age of a staged row, and freshness targets, from both of which on the sink is full."""
STALE_WINDOWS = 3
"""Age of measurements, in windows of the monitor, from which no plan is made by them."""
NEEDS_SUFFIX = ".needs"  # behind the name of the metrics topic
STAGING_INTERVALS_S, FRESHNESS_SHARE = (0.5, 3.0), 0.25

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
        "steering",
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
        given = getattr(init_settings, "init_kwargs", {}).keys()
        if given >= settings_cls.model_fields.keys():
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


def _place(path: str) -> tuple[str, ...]:
    """Return a path's or address's parts, in one form for all its spellings."""
    parts = urlsplit(path)
    scheme = {"s3a": "s3", "file": ""}.get(parts.scheme, parts.scheme)
    return scheme, parts.hostname or "", *filter(None, normpath(f"/{parts.path}").split("/"))


class Settings(TopicSettings):
    """The settings of a group: what its consumers read, and those who look at it."""

    controller: ControllerSettings = ControllerSettings()
    consumer: ConsumerSettings = ConsumerSettings()
    staging: StagingSettings = StagingSettings()
    """Where consumers stage rows for the tables' writers."""
    lake: LakeSettings = LakeSettings()
    tables: tuple[TableSettings, ...] = ()
    """Tables of other names, or with columns."""
    registry: RegistrySettings = RegistrySettings()
    traces: TracesSettings = TracesSettings()

    @model_validator(mode="after")
    def _tables_agree(self) -> Self:
        check_tables(self.tables, self.topics)
        named = [part.format for table in self.tables for part in table.parts if part.by_schema]
        if self.registry.url is None and named:
            without = " without columns" if named[0] == "json" else ""
            raise ValueError(
                f"tables: a format is {named[0]}{without}, and registry.url is not set"
            )
        return self

    @model_validator(mode="after")
    def _staging_touches_no_table(self) -> Self:
        """Old staged files are deleted: a table's own must not lie among them."""
        if self.staging.path is None:
            return self
        lake, staged = _place(self.lake.path), _place(self.staging.path)
        inside = staged[len(lake) :] if staged[: len(lake)] == lake else None
        if lake[: len(staged)] == staged or (inside is not None and inside[0] != STAGING):
            raise ValueError(
                f"staging.path and lake.path overlap ({self.lake.path}): name another place, or "
                f"one below {STAGING} in lake.path"
            )
        return self

    @model_validator(mode="after")
    def _vacuum_spares_writes(self) -> Self:
        longest_s = LONGEST_WRITE * self.consumer.write_timeout_s
        if self.lake.vacuum_retention_s < longest_s:
            raise ValueError(
                f"lake.vacuum_retention_s must be at least {LONGEST_WRITE} x "
                f"consumer.write_timeout_s, {longest_s:g} s: a vacuum would delete files of a "
                "write that is under way"
            )
        return self

    @model_validator(mode="after")
    def _deletes_before_a_vacuum(self) -> Self:
        kept = self.lake.keep_days, *(table.keep_days for table in self.tables)
        if any(kept) and not self.lake.vacuum_interval_s:
            raise ValueError(
                "lake.vacuum_interval_s is 0, and old rows are deleted before a vacuum: give it, "
                "or leave keep_days out"
            )
        return self

    def changed(self, **changes: Any) -> Self:
        """Return these settings with some of them changed, and checked as a whole.

        Raises:
            ValidationError: They do not hold together.
        """
        now = {name: getattr(self, name) for name in type(self).model_fields}
        return type(self)(**now | changes)

    @cached_property
    def _targets(self) -> Targets:
        return Targets(self.tables)

    def targets(self, topic: str) -> tuple[Target, ...]:
        """Return a topic's tables, one at least.

        Raises:
            TableRefused: An entry's name for this topic is none that a table can have.
        """
        return self._targets(topic)

    def keep_days(self, target: Target) -> float:
        """Return for how many days a table keeps rows; 0: for ever."""
        own = None if target.entry is None else target.entry.keep_days
        return self.lake.keep_days if own is None else own

    @property
    def metadata_topic(self) -> str:
        """Return the name of the group's metadata topic."""
        return self.group + METADATA_SUFFIX

    @property
    def commands_topic(self) -> str:
        """Return the name of the topic in which controllers command consumers."""
        return self.group + COMMANDS_SUFFIX

    @property
    def orders_topic(self) -> str:
        """Return the name of the topic in which people give orders and approve plans."""
        return self.group + ORDERS_SUFFIX

    @property
    def landing_topic(self) -> str:
        """Return the name of the topic in which consumers announce staged files."""
        return self.group + LANDING_SUFFIX

    @property
    def staging_path(self) -> str:
        """Return the place of staged files, this group's alone: one directory for each table."""
        return below(self.staging.path or below(self.lake.path, STAGING), self.group)

    @property
    def staging_interval_s(self) -> float:
        """Return the time from one staging of a topic's rows to the next, s."""
        lowest, highest = STAGING_INTERVALS_S
        wanted = FRESHNESS_SHARE * self.lake.freshness_s
        return self.consumer.batch_wait_s or min(max(wanted, lowest), highest)

    @property
    def late_s(self) -> float:
        """Return the age of a staged row from which its table's sink counts as full, s."""
        return max(LATE_S, self.on_time_s)

    @property
    def on_time_s(self) -> float:
        """Return the age of a staged row up to which its table's sink keeps up, s."""
        return LATE_TARGETS * self.lake.freshness_s

    @property
    def stale_s(self) -> float:
        """Return the age of measurements from which no plan is made by them, s."""
        return STALE_WINDOWS * self.monitor.window_s
