"""Metrics of the scaler."""

from binwright.runtime.metrics import TARGET, Metric

SCALER_PASS_SECONDS = Metric(
    "binwright_scaler_pass_seconds",
    "How long the last pass over all scaled groups took.",
    (),
    "scaler",
)
SCALER_PASSES_TOTAL = Metric(
    "binwright_scaler_passes_total", "Passes over all scaled groups.", (), "scaler"
)
SCALED_GROUP_FAULT = Metric(
    "binwright_scaled_group_fault",
    "1 while the group cannot be looked up, or its replicas or its plan cannot be set.",
    TARGET,
    "scaler",
)
SCALED_GROUP_REPLICAS = Metric(
    "binwright_scaled_group_replicas",
    "Replicas that the group's workload is set to; its members where somebody else runs them.",
    TARGET,
    "scaler",
)
SCALED_GROUP_WANTED_REPLICAS = Metric(
    "binwright_scaled_group_wanted_replicas",
    "Replicas that the group needs, within its bounds.",
    TARGET,
    "scaler",
)
SCALED_GROUP_LAG_RECORDS = Metric(
    "binwright_scaled_group_lag_records",
    "Records that the group has not committed, as far as they are there.",
    TARGET,
    "scaler",
)
SCALED_GROUP_LOST_RECORDS = Metric(
    "binwright_scaled_group_lost_records",
    "Records that were deleted before the group had committed them.",
    TARGET,
    "scaler",
)
SCALED_GROUP_RECORDS_PER_SECOND = Metric(
    "binwright_scaled_group_records_per_second",
    "Records/s that arrive at what the group reads.",
    TARGET,
    "scaler",
)
SCALED_GROUP_HOT_PARTITIONS = Metric(
    "binwright_scaled_group_hot_partitions",
    "Partitions that are faster than one replica.",
    TARGET,
    "scaler",
)
SCALED_GROUP_BLOCKED = Metric(
    "binwright_scaled_group_blocked",
    "1 while the number is left alone: paused, or another owner changes it.",
    TARGET,
    "scaler",
)
SCALED_GROUP_PROPOSAL_WAITS = Metric(
    "binwright_scaled_group_proposal_waits",
    "1 while a change waits for approval.",
    TARGET,
    "scaler",
)
SCALED_GROUP_IMBALANCE = Metric(
    "binwright_scaled_group_imbalance",
    "Largest load of a member over the mean, by records/s, of a group that is assigned.",
    TARGET,
    "scaler",
)
SCALED_GROUP_PLAN_GENERATION = Metric(
    "binwright_scaled_group_plan_generation",
    "Generation of the assignment that was published last.",
    TARGET,
    "scaler",
)
SCALED_GROUP_REBALANCES_TOTAL = Metric(
    "binwright_scaled_group_rebalances_total", "Rebalances that were asked for.", TARGET, "scaler"
)
SCALED_GROUP_MOVED_PARTITIONS_TOTAL = Metric(
    "binwright_scaled_group_moved_partitions_total",
    "Partitions that got another reader by rebalances that were asked for.",
    TARGET,
    "scaler",
)
SCALED_GROUP_SAVED_REPLICA_SECONDS = Metric(
    "binwright_scaled_group_saved_replica_seconds",
    "Time of all replicas together that the group had less than with `before_replicas`; below 0: "
    "it had more.",
    TARGET,
    "scaler",
)
