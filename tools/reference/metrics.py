"""The page of all metrics."""

from collections.abc import Mapping
from importlib import import_module
from pkgutil import walk_packages

from tools.reference.markdown import code, table

import binwright
from binwright.runtime.metrics import METRICS, Metric

HEAD = """\
# Metrics

Every service answers `/metrics` in Prometheus' text format on the port `health.port`; `binwright
page` answers it for a whole group on its own port. The same metric of a consumer or a table comes
from the consumer itself and from the page: scrape one of the two. An audit writes its metrics to
a file.
[operations.md](../operations.md) says what to do when a value is wrong, and `deploy/alerts/` has
alert rules.

`python -m tools.reference metrics` prints this page, in a checkout.
"""

WHERE: Mapping[str, str] = {
    "service": "every service",
    "fleet": "the leading controller (fleet `kubernetes`)",
    "fleet, scaler": "the leading controller of ConsumerGroups, and the scaler of ScaledGroups",
    "brokers": "the leading balancer",
    "consumer": "the consumer",
    "group": "`binwright page`",
    "scaler": "the leading scaler",
    "consumer, group": "the consumer and `binwright page`",
    "audit": "the file of `binwright audit --metrics-file`",
}

UNITS = {
    "_bytes_per_second": "bytes/s",
    "_bytes": "bytes",
    "_seconds": "seconds",
    "_ratio": "share, 0 to 1",
    "_version": "number",
}
"""By the end of the name; any other metric is a count."""


def declared() -> Mapping[str, Metric]:
    """Return the metrics of all programs, by name, in the order of the page."""
    for module in walk_packages(binwright.__path__, "binwright."):
        if module.name.endswith("metrics"):
            import_module(module.name)
    places = list(WHERE)
    found = sorted(METRICS.values(), key=lambda each: (places.index(each.where), each.name))
    return {each.name: each for each in found}


def page() -> str:
    """Return the reference, in Markdown."""
    rows = map(_row, declared().values())
    return f"{HEAD}\n{table(['metric', 'type', 'unit', 'labels', 'meaning', 'from'], rows)}"


def _row(metric: Metric) -> tuple[str, ...]:
    labels = ", ".join(map(code, metric.labels))
    name, place = code(metric.name), WHERE[metric.where]
    return name, metric.kind, _unit(metric.name), labels, metric.help, place


def _unit(name: str) -> str:
    measured = name.removesuffix("_total")
    return next((unit for end, unit in UNITS.items() if measured.endswith(end)), "count")
