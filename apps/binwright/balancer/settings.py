"""Settings of the balancer: of its watch over the brokers."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from binwright.protocol.section import Bytes, Positive, Seconds, Section
from binwright.runtime.settings.programs import ProgramSettings


class BrokerSettings(Section):
    """When the balancer proposes to move replicas, and whether it moves them."""

    mode: Literal["observe", "approve", "act"] = "observe"
    """What becomes of plans for brokers: only shown; carried out when approved; or at once."""
    topic: str = "binwright.brokers"
    """Topic of plans that are to be carried out (`approve` and `act`)."""
    bytes_per_hour: Bytes = 100_000_000_000
    """What may begin to be copied in any hour, of all plans."""
    throttle_bytes_per_s: Bytes = 50_000_000
    """What copies may use of each broker, in and out."""
    probe: bool = True
    """Whether copying pauses while producers wait, measured with a topic `binwright.probe`."""
    interval_s: Seconds = 300.0
    """Interval at which brokers are looked at."""
    imbalance: Annotated[float, Field(ge=1)] = 1.3
    """Largest use of a resource, in units of its mean, above which a plan is proposed."""
    least_network_bytes_per_s: Bytes = 100_000
    """Network load of a broker, on average, below which its imbalance is no reason for a plan."""
    within_days: Positive = 7.0
    """A plan is proposed if a broker will be full within this time, by the trend of three days."""
    describe: Path | None = None
    """File that describes capacities and topics (docs/how-to/brokers.md)."""


class BalancerProgramSettings(ProgramSettings):
    """What the balancer and its commands read."""

    brokers: BrokerSettings = BrokerSettings()
    """When the balancer proposes to move replicas between Kafka's brokers."""
