"""The settings of a group: what its consumers read, and those who look at it."""

from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, model_validator

from binwright.group.config import ControllerSettings
from binwright.protocol.selection import (
    COMMANDS_SUFFIX,
    LANDING_SUFFIX,
    METADATA_SUFFIX,
    ORDERS_SUFFIX,
)
from binwright.runtime.settings.consumer import (
    LONGEST_WRITE,
    ConsumerSettings,
    LakeSettings,
    StagingSettings,
)
from binwright.runtime.settings.loading import load
from binwright.runtime.settings.programs import TopicSettings
from binwright.runtime.settings.registry import RegistrySettings
from binwright.runtime.settings.traces import TracesSettings
from binwright.runtime.storage_path import below, place
from binwright.tables.registration import catalog_name, check_catalog_names
from binwright.tables.settings import TableSettings
from binwright.tables.targets import Target, Targets, check_tables

STAGING = "_staging"  # in lake.path
LATE_S, LATE_TARGETS = 60.0, 4
"""Age of a staged row, and freshness targets, from both of which on the sink is full."""
STALE_WINDOWS = 3
"""Age of measurements, in windows of the monitor, from which no plan is made by them."""
STAGING_INTERVALS_S, FRESHNESS_SHARE = (0.5, 10.0), 0.75


def with_text_of_file(entry: Any) -> Any:
    """Return an entry of `tables` with the text of its `columns_file`, and of that of its key.

    The text takes the file's place: other programs may not have the file.

    Raises:
        ValueError: A file cannot be read.
    """
    if not isinstance(entry, dict):
        return entry
    if "key" in entry:
        entry = {**entry, "key": with_text_of_file(entry["key"])}
    if (file := entry.get("columns_file")) is None or entry.get("columns") is not None:
        return entry
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, ValueError, TypeError) as exc:
        why = getattr(exc, "strerror", None) or exc
        raise ValueError(f"columns_file {file} cannot be read: {why}") from exc
    return {**entry, "columns_file": None, "columns": text}


class Settings(TopicSettings):
    """The settings of a group: what its consumers read, and those who look at it."""

    controller: ControllerSettings = ControllerSettings()
    consumer: ConsumerSettings = ConsumerSettings()
    staging: StagingSettings = StagingSettings()
    """Where consumers stage rows for the tables' writers."""
    lake: LakeSettings = LakeSettings()
    tables: tuple[Annotated[TableSettings, BeforeValidator(with_text_of_file)], ...] = ()
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
        lake, staged = place(self.lake.path), place(self.staging.path)
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

    @model_validator(mode="after")
    def _registers_each_table_by_a_name_of_its_own(self) -> Self:
        topics = {*self.topics, *(topic for table in self.tables for topic in table.topics)}
        targets = [target for topic in sorted(topics) for target in self.targets(topic)]
        check_catalog_names({target.name: self.register_as(target) for target in targets})
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

    def register_as(self, target: Target) -> str:
        """Return the name by which a table is registered; "": it is not."""
        own = None if target.entry is None else target.entry.register_as
        template = self.lake.register_as if own is None else own
        return catalog_name(template or "", target.name)

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


def load_settings(**given: Any) -> Settings:
    """Return the settings of a group; see `load`."""
    return load(Settings, **given)
