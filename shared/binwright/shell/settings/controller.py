"""What a consumer can carry, how patient the controller is, and where probes ask."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from binwright.shell.settings.section import Positive, Seconds, Section


class ControllerSettings(Section):
    """What a consumer can carry, and how patient the controller is."""

    limit_bytes_per_s: Positive = 2_400_000.0
    """What one consumer really sustains; a load above it triggers a plan."""
    capacity_bytes_per_s: Positive | None = None
    """What a consumer is packed to; unset: limit x 25/30 (5 s to rebalance, every 30 s)."""
    slot_limits: dict[Annotated[int, Field(ge=0)], Positive] = {}  # noqa: RUF012 - pydantic copies it
    """Slots that sustain another amount: slot to bytes/s; packed to the same share of it."""
    packing: str = "sticky"
    """Who reads what: sticky or sticky:PRICE, exact, or one of the paper's (docs/packing.md)."""
    max_slots: Annotated[int, Field(ge=1, le=10_000)] = 100
    """No more consumers than this, whatever the load."""
    min_slots: Annotated[int, Field(ge=1, le=10_000)] = 1
    """No fewer consumers than this, or than there are partitions, however little the load."""
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
        if self.min_slots > self.max_slots:
            raise ValueError(
                f"min_slots ({self.min_slots}) must not exceed max_slots ({self.max_slots})"
            )
        if beyond := sorted(slot for slot in self.slot_limits if slot >= self.max_slots):
            raise ValueError(f"slot_limits: no slots {beyond}, max_slots is {self.max_slots}")
        return self


class HealthSettings(Section):
    """Where `/live` and `/ready` are answered, for probes."""

    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """Of HTTP; unset: nobody answers."""
    address: str = "127.0.0.1"
    """Whose; in a pod its own, or 0.0.0.0 for all."""
    patience_s: Seconds = 120.0
    """A loop that has not gone round for so long is stuck, and `/live` says so."""
