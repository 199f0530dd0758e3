"""Metrics of the balancer."""

from binwright.runtime.metrics import Metric

BROKERS_DEAD_LOG_DIRECTORIES = Metric(
    "binwright_brokers_dead_log_directories",
    "Log directories that a broker cannot read any more.",
    ("broker",),
    "brokers",
)
BROKERS_IMBALANCE_RATIO = Metric(
    "binwright_brokers_imbalance_ratio",
    "Largest use of a resource of a broker, in units of the mean.",
    ("resource",),
    "brokers",
)
BROKERS_PROPOSED_BYTES = Metric(
    "binwright_brokers_proposed_bytes",
    "Bytes that the proposed plan for brokers copies; without a proposal there is none.",
    (),
    "brokers",
)
BROKERS_LEFT_PARTITIONS = Metric(
    "binwright_brokers_left_partitions",
    "Partitions that the plan under way has still to move; without one there is none.",
    (),
    "brokers",
)
