"""The constants of a simulated group."""

from dataclasses import dataclass
from typing import Literal

Protocol = Literal["eager", "incremental"]
Assignor = Literal["range", "round-robin"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """How consumers, their coordinator and the controller behave; times in seconds.

    The defaults are those of the published experiments where these are known, else calibrated on
    their published prototypes and logs.
    """

    service_s: float = 0.005  # of one record
    poll_s: float = 0.002  # from a fetch to the first record of the batch
    commit_s: float = 0.003  # after the last record of the batch
    max_poll: int = 500  # records of a batch
    burst_s: float = 1.0  # between two arrivals of a batch of records
    sla_s: float = 0.5  # from the arrival of a record to the end of its work

    start_s: float = 4.0  # from the order to the first join, at least
    start_spread_s: float = 0.5  # uniformly more
    stop_s: float = 0.2  # from the order to end until the consumer learns of it
    heartbeat_s: float = 3.0
    callback_s: float = 0.02  # what a consumer does before it gives partitions up
    sync_s: float = 0.03  # from the last join until the assignment is known
    protocol: Protocol = "eager"
    drains: bool = False  # whether a consumer that is to end reads on until its partitions moved
    assignor: Assignor = "range"  # where the policy assigns nothing

    first_replicas: int = 1
    warm_up_s: float = 15.0  # before the first decision
    interval_s: float = 1.0  # from a decision to the next
    overhead_s: float = 0.02  # what the controller's loop adds to the interval, +- 30 %
    scaling_s: float = 0.3  # what a change of replicas adds
