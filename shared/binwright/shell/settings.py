"""Settings of all services: one TOML file, overridden by the environment, checked as a whole.

`BINWRIGHT_SETTINGS` names the file; `BINWRIGHT_<SECTION>__<NAME>` overrides one value.
Unknown keys are refused, all faults are told at once, and secrets print as stars.
"""

import json
import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlparse

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from binwright.core.errors import SettingsError
from binwright.shell.connect import shown

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Seconds = Positive
Bytes = Annotated[int, Field(gt=0)]
FILE_VARIABLE = "BINWRIGHT_SETTINGS"
METADATA_SUFFIX = ".metadata"  # of a group's hand-over topic, behind the group's name
_PREFIX, _SERVICE_HOST = "BINWRIGHT_", "_SERVICE_HOST"
OTHER_VARIABLES = {FILE_VARIABLE, "BINWRIGHT_CACHE", "BINWRIGHT_IVY_SETTINGS"}
"""Variables of ours that are no settings."""


class Section(BaseModel):
    """A table of the settings file."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class KafkaSettings(Section):
    """How to reach Kafka."""

    bootstrap_servers: str = "localhost:9092"
    """Brokers to begin with, HOST:PORT, separated by commas."""
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    """How connections are secured."""
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "PLAIN"
    """How the user is authenticated, with SASL."""
    sasl_username: str | None = None
    """Needed with SASL."""
    sasl_password: SecretStr | None = None
    """Needed with SASL."""
    ssl_ca_file: Path | None = None
    """PEM of who signed the brokers' certificates; unset: the system's."""
    ssl_certificate_file: Path | None = None
    """PEM of our own certificate, where brokers ask for one."""
    ssl_key_file: Path | None = None
    """PEM of its key."""
    request_timeout_s: Seconds = 30.0
    """How long one request may take."""
    replication_factor: Annotated[int, Field(ge=1, le=3)] | None = None
    """Of the topics we create; unset: 3, or as many as there are brokers if those are fewer."""

    @model_validator(mode="after")
    def _sasl_is_whole(self) -> Self:
        if self.security_protocol.startswith("SASL") and not (
            self.sasl_username and self.sasl_password
        ):
            raise ValueError(f"{self.security_protocol} needs sasl_username and sasl_password")
        return self


class MonitorSettings(Section):
    """How the monitor measures."""

    interval_s: Seconds = 1.0
    """From one measurement to the next."""
    window_s: Seconds = 30.0
    """What a rate is averaged over; at least two intervals."""
    topic: str = "binwright.metrics"
    """Where measurements go."""
    pattern: str | None = None
    """Measure also every topic whose whole name fits this regular expression; never Kafka's own."""
    answer_s: Seconds = 2.0
    """How long a pass waits for a broker; partitions of one that is late are stale meanwhile."""
    sizes_per_pass: Annotated[int, Field(gt=0)] = 20_000
    """Of more partitions than this the sizes are asked in turns, the offsets always."""

    @field_validator("pattern")
    @classmethod
    def _pattern_compiles(cls, value: str | None) -> str | None:
        try:
            re.compile(value or "")
        except re.error as exc:
            raise ValueError(f"not a regular expression: {value!r}: {exc}") from exc
        return value

    @model_validator(mode="after")
    def _window_holds_passes(self) -> Self:
        if self.window_s < 2 * self.interval_s:
            raise ValueError(
                f"window_s ({self.window_s}) must be at least twice interval_s ({self.interval_s})"
            )
        return self


class ControllerSettings(Section):
    """What a consumer can carry, and how patient the controller is."""

    limit_bytes_per_s: Positive = 2_400_000.0
    """What one consumer really sustains; a load above it triggers a plan."""
    capacity_bytes_per_s: Positive | None = None
    """What a consumer is packed to; unset: limit x 25/30 (5 s to rebalance, every 30 s)."""
    slot_limits: dict[Annotated[int, Field(ge=0)], Positive] = {}
    """Slots that sustain another amount: slot to bytes/s; packed to the same share of it."""
    packing: str = "sticky"
    """Who reads what: sticky or sticky:PRICE, exact, or one of the paper's (docs/packing.md)."""
    max_slots: Annotated[int, Field(ge=1, le=10_000)] = 100
    """No more consumers than this, whatever the load."""
    fleet: Literal["process", "docker", "kubernetes", "fixed"] = "process"
    """Where consumers run: our processes, containers, Deployments, or slots that others run."""
    mode: Literal["observe", "approve", "act"] = "act"
    """Whether plans are only shown, wait until a person approves them, or are carried out."""
    process_logs: Path | None = None
    """Where the process fleet's consumers write `consumer-N.log`; unset: where we write."""
    look_again_s: Seconds = 60.0
    """How often a better (smaller) plan is looked for although nothing forces one."""
    consumer_timeout_s: Seconds = 10.0
    """A consumer that has not reported for so long is declared dead."""
    start_timeout_s: Seconds = 300.0
    """Who reports, but is not ready by then, is replaced; the next one has twice as long."""
    plan_timeout_s: Seconds = 120.0
    """A plan that is not carried out by then is made anew."""
    repeat_s: Seconds = 10.0
    """An unanswered command is said again after so long."""

    @property
    def capacity(self) -> float:
        """Return what a consumer is packed to, bytes/s."""
        return self.capacity_bytes_per_s or self.limit_bytes_per_s * 25 / 30

    @model_validator(mode="after")
    def _capacity_within_limit(self) -> Self:
        if self.capacity > self.limit_bytes_per_s:
            raise ValueError(
                f"capacity_bytes_per_s ({self.capacity:g}) must not exceed "
                f"limit_bytes_per_s ({self.limit_bytes_per_s:g})"
            )
        if beyond := sorted(slot for slot in self.slot_limits if slot >= self.max_slots):
            raise ValueError(f"slot_limits: no slots {beyond}, max_slots is {self.max_slots}")
        return self


class KubernetesSettings(Section):
    """Where the kubernetes fleet's Deployments are, and what is in them."""

    namespace: Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")] | None = None
    """Where everything is; unset: the pod's own namespace."""
    kubeconfig: Path | None = None
    """How to reach the cluster from outside; unset: as the pod's service account."""
    template: Annotated[str, Field(pattern=r"^[a-z0-9.-]{1,253}$")] = "binwright-consumer"
    """The ConfigMap whose `pod.yaml` is the template of a consumer's pod."""
    owner: str | None = None
    """The controller's own Deployment, with which its consumers vanish; unset: they stay."""
    groups: bool = False
    """Run every ConsumerGroup object there is, instead of the one group of these settings."""
    request_timeout_s: Seconds = 10.0
    """How long one call to Kubernetes may take."""


class DockerSettings(Section):
    """What the docker fleet's containers are made from, and where."""

    socket: Path = Path("/var/run/docker.sock")
    """The engine's; whoever may use it is as mighty as root on that machine."""
    image: str = "binwright-consumer:0.1.0"
    """Of a consumer; pulled if the engine does not have it."""
    realm: Annotated[str, Field(pattern=r"^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,62}$")] | None = None
    """Tells ours from other systems' containers; unset: our compose project, or `binwright`."""
    network: str | None = None
    """Which network they join; unset: our own container's, or the engine's default."""
    volumes: tuple[Annotated[str, Field(pattern=r"^[^:]+:/[^:]*(:[^:]+)?$")], ...] = ()
    """What they see of other file systems, `SOURCE:TARGET[:ro]` each."""
    environment: tuple[Annotated[str, Field(pattern=r"^[^=]+=")], ...] = ()
    """`NAME=VALUE` each, besides these settings, which they get as variables."""
    memory_bytes: Annotated[int, Field(ge=64_000_000)] | None = None
    """How much memory one may use; unset: as much as there is."""
    cpus: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """How many processors one may use; unset: all."""
    ends_with_controller: bool = False
    """A controller that is asked to end ends its consumers first; for one that is the only one."""
    request_timeout_s: Seconds = 30.0
    """How long one call to the engine may take."""
    pull_timeout_s: Seconds = 600.0
    """How long the image may take to come."""


class ConsumerSettings(Section):
    """How a consumer batches and writes."""

    batch_bytes: Bytes = 5_000_000
    """A batch of this size is written at once."""
    batch_wait_s: Seconds = 1.0
    """A smaller one is written after so long."""
    batch_cap_bytes: Bytes = 64_000_000
    """While a write is in flight the next batch grows up to here; then fetching pauses."""
    start: Literal["earliest", "latest"] = "earliest"
    """Where a partition begins that nothing has landed of."""
    isolation: Literal["read_committed", "read_uncommitted"] = "read_committed"
    """Whether records of aborted transactions are landed too."""
    report_s: Seconds = 1.0
    """From one report to the controller to the next."""
    write_timeout_s: Seconds = 120.0
    """A write without a verdict by then is sent again, under the same version."""
    drain_timeout_s: Seconds = 60.0
    """How long a graceful exit may take; half of it until others have taken what was read."""

    @model_validator(mode="after")
    def _cap_holds_a_batch(self) -> Self:
        if self.batch_cap_bytes < self.batch_bytes:
            raise ValueError(
                f"batch_cap_bytes ({self.batch_cap_bytes}) must be at least "
                f"batch_bytes ({self.batch_bytes})"
            )
        return self


class HealthSettings(Section):
    """Where `/live` and `/ready` are answered, for probes."""

    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """Of HTTP; unset: nobody answers."""
    address: str = "127.0.0.1"
    """Whose; in a pod its own, or 0.0.0.0 for all."""
    patience_s: Seconds = 120.0
    """A loop that has not gone round for so long is stuck, and `/live` says so."""


class LakeSettings(Section):
    """Where tables live, and which Spark writes them."""

    path: str = "lake"
    """A directory or object-store prefix that the Spark server can write; one table per topic."""
    spark: Annotated[str, Field(repr=False)] = "sc://localhost:15002"
    """The Spark Connect server that writes the tables; a token in it is not shown."""

    @field_validator("spark")
    @classmethod
    def _is_connect(cls, value: str) -> str:
        parts = urlparse(value)
        if parts.scheme != "sc" or not parts.hostname:
            got = shown(value)
            raise ValueError(f"expected a Spark Connect address, sc://HOST:PORT, got {got!r}")
        return value

    @field_validator("path")
    @classmethod
    def _is_absolute(cls, value: str) -> str:
        if not value:
            raise ValueError("must name a directory or prefix")
        # The Spark server may have another working directory than we.
        return value if urlparse(value).scheme else str(Path(value).absolute())


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
    lake: LakeSettings = LakeSettings()
    health: HealthSettings = HealthSettings()
    """Where probes ask whether a service lives and is ready."""

    @property
    def metadata_topic(self) -> str:
        """Return the group's hand-over topic."""
        return self.group + METADATA_SUFFIX

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


def _told(where: tuple[int | str, ...], what: str) -> str:
    name = ".".join(map(str, where)) or "settings"
    return f"  {name}: {what.removeprefix('Value error, ')}"


def _of_a_service(name: str) -> bool:
    """Whether Kubernetes made it, for a Service that is called as we are: it tells every pod."""
    hosts = (key for key in os.environ if key.endswith(_SERVICE_HOST))
    services = [host.removesuffix(_SERVICE_HOST) for host in hosts]
    return any(name.startswith((f"{s}_SERVICE_", f"{s}_PORT")) for s in services)


def load_settings(**given: Any) -> Settings:
    """Read the file and the environment; `given` wins over both.

    Raises:
        SettingsError: A value or key is wrong, or the file cannot be read; names every fault.
    """
    path = os.environ.get(FILE_VARIABLE)
    if path and not Path(path).is_file():
        raise SettingsError(f"{FILE_VARIABLE}: no such file: {path}")
    known = {f"{_PREFIX}{name}".upper() for name in Settings.model_fields} | OTHER_VARIABLES
    strange = [
        name
        for name in sorted(os.environ)
        if name.startswith(_PREFIX)
        and name.partition("__")[0] not in known
        and not _of_a_service(name)
    ]
    if strange:
        raise SettingsError(f"unknown variables: {', '.join(strange)}")
    try:
        return Settings(**given)
    except ValidationError as exc:
        faults = [
            _told(error["loc"], error["msg"])
            for error in exc.errors(include_url=False, include_context=False, include_input=False)
        ]
        where = f" (from {path} and the environment)" if path else ""
        raise SettingsError("\n".join([f"settings do not hold{where}:", *faults])) from exc
    except ValueError as exc:  # TOML or JSON that cannot be parsed
        raise SettingsError(f"settings cannot be read: {exc}") from exc


def settings_environment(settings: Settings) -> dict[str, str]:
    """Return the variables from which `load_settings` reads these settings again."""
    found: dict[str, str] = {}
    for name in type(settings).model_fields:
        value = getattr(settings, name)
        if isinstance(value, Section):
            for key in type(value).model_fields:
                inner = getattr(value, key)
                if inner is not None:
                    found[f"BINWRIGHT_{name}__{key}".upper()] = _as_variable(inner)
        else:
            found[f"BINWRIGHT_{name}".upper()] = _as_variable(value)
    return found


def _as_variable(value: object) -> str:
    match value:
        case SecretStr():
            return value.get_secret_value()
        case tuple() | dict():
            return json.dumps(value)
        case _:
            return str(value)
