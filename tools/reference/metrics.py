"""The page of all metrics."""

from collections.abc import Mapping
from importlib import import_module
from pkgutil import walk_packages

from tools.reference.markdown import Entry, code, entries

import binwright
from binwright.runtime.metrics import METRICS, Metric

HEAD = """\
# Metrics

Every service answers `/metrics` in Prometheus' text format on the port `health.port`; `binwright
page` answers it for a whole group on its own port. What comes from the consumer and from the page
is the same metric: scrape one of the two.
[operations.md](../operations.md) says what to do when a value is wrong, and `deploy/alerts/` has
alert rules. Names end with the unit: `_seconds`, `_bytes`, `_bytes_per_second`, `_ratio` (0 to 1);
all others count. `_total` at the end is a counter, what is no histogram is else a gauge.
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
    found = declared().values()
    parts = [HEAD]
    for where, place in WHERE.items():
        parts.append(f"## From {place}\n")
        its = [metric for metric in found if metric.where == where]
        for labels in sorted({metric.labels for metric in its}):
            head = f"Labels {', '.join(map(code, labels))}:" if labels else "Without labels:"
            parts.append(f"{head}\n\n{entries(_entry(m) for m in its if m.labels == labels)}")
    return "\n".join(parts)


def _entry(metric: Metric) -> Entry:
    return code(metric.name), ("histogram" if metric.bounds else "",), metric.help
