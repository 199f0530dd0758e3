"""Settings of the scaler: groups of ordinary consumers, and where their replicas run."""

from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from binwright.kubernetes.settings import KubernetesSettings, check_namespaces
from binwright.protocol.section import Seconds, Section, TopicPatterns, check_distinct
from binwright.runtime.addresses import is_loopback
from binwright.runtime.settings.programs import ProgramSettings
from binwright.scaler.decide.config import ScaledGroupSettings

REPLICA = "{replica}"


class LocalGroupSettings(ScaledGroupSettings):
    """A scaled group whose replicas are processes of this machine, or somebody else's."""

    command: tuple[str, ...] = ()
    """A replica's command line; `{replica}` in it stands for its number, from 0. Unset, with
    `assigns`: somebody else runs the members, and only what they read is decided."""
    environment: tuple[Annotated[str, Field(pattern=r"^[^=]+=")], ...] = ()
    """Variables `NAME=VALUE` of replicas. Of the scaler's own they see a few, such as PATH."""
    pass_on: tuple[str, ...] = ()
    """Further variables of the scaler's own that replicas see."""
    logs: Path | None = None
    """Directory for the replicas' output (`consumer-N.log`); unset: the scaler's own output."""
    grace_s: Seconds = 30.0
    """Time from SIGTERM to SIGKILL."""

    @model_validator(mode="after")
    def _command_names_the_replica(self) -> Self:
        if self.assigns and not self.command:
            if self.mode == "approve":
                raise ValueError(
                    f"group {self.group}: mode approve is for changes of a number, and without a "
                    "command somebody else sets it: use act, or observe"
                )
            return self
        if not any(REPLICA in part for part in self.command):
            raise ValueError(
                f"group {self.group}: needs a command with {REPLICA}, by which the replicas' "
                "processes are told apart; or assigns = true, if somebody else runs them"
            )
        return self


class ScalerSettings(Section):
    """The scaler of ordinary consumer groups: its passes, and where groups are described."""

    period_s: Seconds = 10.0
    """Interval between passes over all groups."""
    rate_window_s: Seconds = 60.0
    """Time over which rates are taken, of topics that no monitor follows."""
    zero_poll_s: Seconds = 2.0
    """Interval between looks at the topics of groups at zero."""
    broker_timeout_s: Seconds = 2.0
    """Time that a pass waits for a broker."""
    objects: bool = False
    """Scale the workloads of ScaledGroup objects, in the namespaces of `[kubernetes]`."""
    groups: tuple[LocalGroupSettings, ...] = ()
    """Groups whose replicas run here, or by somebody else: a table `[[scaler.groups]]` each."""
    assigned_groups: dict[str, TopicPatterns] = {}  # noqa: RUF012 - pydantic copies it
    """Namespace -> patterns of the groups that its ScaledGroups may assign; unset: any."""
    plans_topic: str = "binwright.plans"
    """Topic to which assignments are published; the members' assignors read it."""
    plans_valid_s: Seconds = 600.0
    """For how long assignors follow what is not repeated; it is, three times as often."""
    keda_port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """Port of the external scaler for KEDA (gRPC); unset: none is started."""
    keda_address: str = "127.0.0.1"
    """Address of the external scaler; in a pod 0.0.0.0."""
    keda_certificate_file: Path | None = None
    """The external scaler's certificate, PEM; unset: connections are not encrypted."""
    keda_key_file: Path | None = None
    """The key of that certificate, PEM."""
    keda_client_ca_file: Path | None = None
    """Who signs KEDA's own certificate, PEM: other clients are refused; unset: any may ask."""
    keda_allow_any_client: bool = False
    """Let clients ask without a certificate from other machines, too."""
    keda_groups: dict[str, TopicPatterns] = {}  # noqa: RUF012 - pydantic copies it
    """Namespace -> patterns of the groups that its ScaledObjects may name; unset: any."""
    keda_triggers_per_namespace: Annotated[int, Field(ge=1, le=1000)] = 100
    """Most triggers of one namespace."""

    @model_validator(mode="after")
    def _values_fit_together(self) -> Self:
        check_distinct([each.group for each in self.groups], "groups: ")
        if (self.keda_certificate_file is None) != (self.keda_key_file is None):
            raise ValueError("keda_certificate_file and keda_key_file need each other")
        if self.keda_client_ca_file is not None and self.keda_certificate_file is None:
            raise ValueError("keda_client_ca_file needs keda_certificate_file")
        if (
            self.keda_port is not None
            and self.keda_client_ca_file is None
            and not self.keda_allow_any_client
            and not is_loopback(self.keda_address)
        ):
            raise ValueError(
                f"keda_address is {self.keda_address}, where anybody may ask: give "
                "keda_client_ca_file, or set keda_allow_any_client"
            )
        if self.zero_poll_s > self.period_s:
            raise ValueError(
                f"zero_poll_s ({self.zero_poll_s:g}) must not exceed period_s ({self.period_s:g})"
            )
        return self


class ScalerProgramSettings(ProgramSettings):
    """What the scaler reads."""

    kubernetes: KubernetesSettings = KubernetesSettings()
    """Access to the cluster whose workloads are scaled."""
    scaler: ScalerSettings = ScalerSettings()
    """Groups of ordinary consumers that are scaled."""

    @model_validator(mode="after")
    def _namespaces_are_of_objects(self) -> Self:
        check_namespaces(self.kubernetes, self.scaler.objects)
        return self
