"""Reads a ConsumerGroup object as settings: its fields override the controller's own settings."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from binwright.group.config import Pin
from binwright.kubernetes.objects import DOMAIN, Obj, field_name, name_of, renamed
from binwright.protocol.errors import SettingsError
from binwright.protocol.patterns import compile_pattern
from binwright.protocol.section import Section, TopicPatterns
from binwright.runtime.settings.group import Settings
from binwright.runtime.settings.loading import settings_environment
from binwright.runtime.spark_url import has_token
from binwright.tables.masks import MaskSettings
from binwright.tables.settings import KeySettings, TableSettings

API_VERSION, KIND = f"{DOMAIN}/v1alpha1", "ConsumerGroup"
PLURAL = "consumergroups"
# The settings that an object may set, passed to its consumers as variables. They read all others
# from the settings file that their template mounts.
_PASSED_ON = (
    "BINWRIGHT_GROUP",
    "BINWRIGHT_TOPICS",
    "BINWRIGHT_LAKE__PATH",
    "BINWRIGHT_LAKE__SPARK",
    "BINWRIGHT_LAKE__FRESHNESS_S",
    "BINWRIGHT_LAKE__KEEP_DAYS",
    "BINWRIGHT_LAKE__REGISTER_AS",
    "BINWRIGHT_TABLES",
    "BINWRIGHT_STAGING__PATH",
    "BINWRIGHT_CONSUMER__START",
    "BINWRIGHT_CONTROLLER__MAX_SLOTS",
)


def _fields(*settings: str) -> dict[str, str]:
    """Return the settings by their names in an object."""
    other = {"max_slots": "maxConsumers", "min_slots": "minConsumers", "slot": "consumer"}
    return {other.get(name) or field_name(name): name for name in settings}


# What an object may set, by where its fields stand; tools/crds.py writes their schema.
LAKE = _fields("path", "spark", "freshness_s", "keep_days", "register_as")
STAGING = {"staging": "path"}
CONSUMER = _fields("start")
TABLE = _fields(*(name for name in TableSettings.model_fields if name != "columns_file"))
KEY = _fields(*(name for name in KeySettings.model_fields if name != "columns_file"))
MASK = _fields(*MaskSettings.model_fields)
CONTROLLER = _fields(
    "limit_bytes_per_s",
    "capacity_bytes_per_s",
    "slot_limits",
    "packing",
    "zone_price",
    "split",
    "max_slots",
    "min_slots",
    "mode",
)
BUDGETS = _fields(
    "replan_interval_s",
    "catch_up_s",
    "consumer_timeout_s",
    "start_timeout_s",
    "plan_timeout_s",
    "command_retry_s",
)
CONTROL = _fields("frozen_hours", "moves_per_hour", "moves_at_a_time", "moving_bytes_per_s")
PIN = _fields(*Pin.model_fields)


class _Control(BaseModel):
    """Pins; the other fields are named in `CONTROL`."""

    model_config = ConfigDict(extra="allow")

    pins: tuple[dict[str, Any], ...] | None = None


class _Spec(BaseModel):
    """What no section of the settings checks, or would by another name."""

    model_config = ConfigDict(alias_generator=to_camel)

    group: str | None = None
    topics: tuple[str, ...] = ()
    topic_patterns: TopicPatterns = ()
    exclude_topic_patterns: TopicPatterns = ()
    sink: dict[str, Any] = Field(default_factory=dict)
    budgets: dict[str, Any] = Field(default_factory=dict)
    control: _Control = Field(default_factory=_Control)
    tables: tuple[dict[str, Any], ...] | None = None


S = TypeVar("S", bound=Section)

COLUMNS_TEXT = 1 << 18  # characters of `columns` of all tables of an object: some 10,000 columns
NAMED_TOPICS = 10_000  # by all its tables together
TABLE_STEPS = 5_000  # of the patterns of all its tables together, as of a group's own
MATCHES = 1_000_000  # of topics that it names by patterns of its tables: half a second
"""What an object may make its controller do, which leads those of others, too."""


def group_name(obj: Obj) -> str:
    """Return the name of an object's group."""
    name: str = obj["spec"].get("group") or name_of(obj)
    return name


def settings_of(obj: Obj, base: Settings) -> Settings:
    """Return the settings of the object's group.

    Raises:
        SettingsError: They are invalid together with the controller's own, or large; names every
            fault.
    """
    spec = obj["spec"]
    try:
        parsed = _Spec.model_validate(spec)
        if large := _large(parsed):
            raise SettingsError(f"the spec does not hold: {large}")
        if not (parsed.topics or parsed.topic_patterns):
            raise SettingsError("the spec does not hold: it names neither topics nor topicPatterns")
        settings = base.changed(
            group=parsed.group or name_of(obj),
            topics=parsed.topics,
            topic_patterns=parsed.topic_patterns,
            exclude_topic_patterns=parsed.exclude_topic_patterns,
            controller=_changed(base.controller, _controller(spec, parsed)),
            tables=_tables(parsed.tables) if parsed.tables is not None else base.tables,
            lake=_changed(base.lake, renamed(parsed.sink, LAKE)),
            staging=_changed(base.staging, renamed(parsed.sink, STAGING)),
            consumer=_changed(base.consumer, renamed(spec, CONSUMER)),
        )
    except ValidationError as exc:
        faults = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in exc.errors()]
        raise SettingsError(f"the spec does not hold: {'; '.join(faults)}") from exc
    if secrets := secrets_in(settings):
        raise SettingsError(f"the spec does not hold: {'; '.join(secrets)}")
    return settings


def given_settings(obj: Obj) -> frozenset[str]:
    """Return the settings of the controller that a valid object gives itself."""
    spec = obj["spec"]
    return frozenset(_controller(spec, _Spec.model_validate(spec)))


def _large(spec: _Spec) -> str:
    """Return what of the tables is more than one object may have; empty if nothing is.

    Looked at before anything of it is parsed.
    """
    tables = spec.tables or ()
    texts = [part.get("columns") for table in tables for part in (table, table.get("key") or {})]
    characters = sum(len(text) for text in texts if isinstance(text, str))
    if characters > COLUMNS_TEXT:
        return f"tables: {characters:,} characters of columns, {COLUMNS_TEXT:,} at most together"
    patterns = [str(text) for table in tables for text in table.get("topicPatterns") or ()]
    named = {*spec.topics, *(str(t) for table in tables for t in table.get("topics") or ())}
    if len(named) > NAMED_TOPICS:
        return f"tables: {len(named):,} topics named, {NAMED_TOPICS:,} at most together"
    if (tries := len(named) * len(patterns)) > MATCHES:
        return (
            f"tables: {len(named):,} topics and {len(patterns):,} patterns are {tries:,} pairs, "
            f"{MATCHES:,} at most: name fewer topics, or use fewer patterns"
        )
    steps = 0
    for text in patterns:
        with suppress(ValueError):  # told with its table
            steps += compile_pattern(text).steps
    if steps > TABLE_STEPS:
        return f"tables: patterns of {steps:,} steps, {TABLE_STEPS:,} at most together: use fewer"
    return ""


def _tables(tables: Iterable[Obj]) -> tuple[TableSettings, ...]:
    return tuple(
        TableSettings(**renamed(table, TABLE) | {"mask": _mask(table.get("mask"))})
        for table in tables
    )


def _mask(mask: Obj | None) -> Obj | None:
    """Return a mask under our names; what it has beside them is refused, not left out."""
    return mask and {MASK.get(name, name): value for name, value in mask.items()}


def _controller(spec: Obj, parsed: _Spec) -> dict[str, Any]:
    controller = renamed(spec, CONTROLLER) | renamed(parsed.budgets, BUDGETS)
    controller |= renamed(parsed.control.model_extra or {}, CONTROL)
    if parsed.control.pins is not None:
        controller["pins"] = tuple(renamed(pin, PIN) for pin in parsed.control.pins)
    if spec.get("paused", False):
        controller["mode"] = "observe"
    if "limit_bytes_per_s" in controller:  # these two of the settings go with the settings' limit
        controller |= {"capacity_bytes_per_s": None, "slot_limits": {}} | controller
    return controller


def secrets_in(settings: Settings) -> list[str]:
    """Return which of these settings hold a secret, and where to put it instead.

    Consumers get settings as variables, which anyone can read who may read Deployments.
    """
    secrets = []
    if any(map(has_token, settings.lake.servers)):
        secrets.append(
            "lake.spark (sink.spark): holds a token; put it into a Secret, mount that into the "
            "consumers' pods (their template), and set lake.token_file to the file"
        )
    if (path := settings.staging.path) and "@" in urlsplit(path).netloc:
        secrets.append(
            "staging.path (sink.staging): holds keys; give consumers a Secret with "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY as variables (their template's envFrom)"
        )
    return secrets


def environment(settings: Settings) -> dict[str, str]:
    """Return the variables of the group's consumers; never a secret.

    Raises:
        SettingsError: The settings hold a secret.
    """
    if secrets := secrets_in(settings):
        raise SettingsError("; ".join(secrets))
    every = settings_environment(settings)
    return {name: every[name] for name in _PASSED_ON if name in every}


def _changed(section: S, changes: Mapping[str, Any]) -> S:
    return type(section)(**{**section.model_dump(), **changes})
