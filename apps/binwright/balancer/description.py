"""What Kafka does not know of a cluster: capacities, and what a person wants of topics.

A TOML file, all of it optional:

    headroom = 0.2                       # share of each capacity that a plan leaves free
    [capacity]                           # of each broker
    disk_bytes = 2e12
    network_in_bytes_per_s = 1e8
    [brokers.3]                          # of one broker
    disk_bytes = 4e12
    [topics.orders]
    readers = 2                          # consumer groups that read all of it
    group = "a"                          # topics of one group share no broker
    [pinned]
    "orders-0" = [1]                     # brokers that must hold a replica
"""

import tomllib
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from binwright.protocol.errors import SettingsError
from binwright.protocol.section import Positive, Section

Share = Annotated[float, Field(ge=0, lt=1)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class BrokerCapacity(Section):
    """What a broker sustains; unset: see `cluster_model`."""

    disk_bytes: Positive | None = None
    """Of its disks."""
    network_in_bytes_per_s: Positive | None = None
    """From producers and from leaders of other brokers."""
    network_out_bytes_per_s: Positive | None = None
    """To consumers and to followers on other brokers."""
    cpu_cores: Positive | None = None
    """Counts only with costs of bytes."""

    def over(self, other: "BrokerCapacity") -> "BrokerCapacity":
        """Return this capacity, and what it does not set from another one."""
        return BrokerCapacity(**{**other.model_dump(), **self.model_dump(exclude_none=True)})


class DescribedTopic(Section):
    """What is wanted of a topic."""

    readers: Amount = 1.0
    """Consumer groups that read all of it; 0.5: one that reads half."""
    group: str | None = None
    """Topics of one group share no broker."""
    excluded: bool = False
    """Its partitions stay where they are."""
    excluded_brokers: tuple[int, ...] = ()
    """Brokers that may hold none of it."""
    rack_spread: bool = True
    """Its replicas are spread over the racks."""
    reader_racks: tuple[str, ...] = ()
    """Racks in which its consumers run, if they read from leaders: those go there where limits
    allow it."""
    replication: Annotated[int, Field(ge=1)] | None = None
    """Replicas of each partition; unset: as most of its partitions have."""
    retention_s: Positive | None = None
    """How long it is kept; unset: its `retention.ms`."""
    retention_bytes: Annotated[int, Field(gt=0)] | None = None
    """How much of each partition is kept; unset: its `retention.bytes`."""


class ClusterDescription(Section):
    """See the module."""

    headroom: Share = 0.2
    """Share of each capacity that a plan leaves free."""
    capacity: BrokerCapacity = BrokerCapacity()
    """Of each broker."""
    brokers: dict[int, BrokerCapacity] = {}  # noqa: RUF012 - pydantic copies it
    """Of single brokers, by number."""
    topics: dict[str, DescribedTopic] = {}  # noqa: RUF012 - as above
    """By name."""
    pinned: dict[str, tuple[int, ...]] = {}  # noqa: RUF012 - as above
    """Brokers that must hold a replica, by partition: `orders-0`."""
    cpu_s_per_byte_in: Amount = 0.0
    """CPU-seconds of a broker for each byte that comes in."""
    cpu_s_per_byte_out: Amount = 0.0
    """CPU-seconds of a broker for each byte that goes out."""

    def topic(self, name: str) -> DescribedTopic:
        """Return what is wanted of a topic."""
        return self.topics.get(name, DescribedTopic())

    def of_broker(self, broker: int) -> BrokerCapacity:
        """Return what is said of a broker."""
        return self.brokers.get(broker, BrokerCapacity()).over(self.capacity)


def read(path: Path | None) -> ClusterDescription:
    """Read a file; None: nothing is described. Raises `SettingsError` naming every fault."""
    if path is None:
        return ClusterDescription()
    try:
        return ClusterDescription.model_validate(tomllib.loads(path.read_text()))
    except (OSError, tomllib.TOMLDecodeError) as exc:
        raise SettingsError(f"{path}: {exc}") from exc
    except ValidationError as exc:
        faults = (f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in exc.errors())
        raise SettingsError(f"{path}: {'; '.join(faults)}") from exc
