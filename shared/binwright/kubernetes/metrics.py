"""Metrics of what objects of Kubernetes ask for."""

from binwright.runtime.metrics import Metric

BEYOND_LIMIT = Metric(
    "binwright_over_limit",
    "What the objects of a namespace would have beyond one of its limits.",
    ("namespace", "limit"),
    "fleet, scaler",
)
