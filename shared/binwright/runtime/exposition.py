"""How Prometheus gets the values of metrics: by prometheus-client, which only services import."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Histogram, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from binwright.runtime.metrics import Metric, Sample

CONTENT_TYPE = "text/plain; version=0.0.4"  # the server adds the charset

# A series more for each histogram and its labels, which no rule reads.
disable_created_metrics()  # type: ignore[no-untyped-call]


def histogram(metric: Metric, registry: CollectorRegistry) -> Histogram:
    """Return a histogram without values, which a registry's exposition has."""
    bounds = metric.bounds
    return Histogram(metric.name, metric.help, metric.labels, buckets=bounds, registry=registry)


@dataclass(frozen=True, slots=True)
class Samples(Collector):
    """Gives Prometheus samples of the moment at which it asks, of each metric together.

    Attributes:
        make: Makes them.
    """

    make: Callable[[], Iterable[Sample]]

    def collect(self) -> Iterable[GaugeMetricFamily | CounterMetricFamily]:
        """Return each metric with its values."""
        families: dict[str, GaugeMetricFamily | CounterMetricFamily] = {}
        for sample in self.make():
            metric = sample.metric
            family = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
            if metric.name not in families:
                families[metric.name] = family(metric.name, metric.help, labels=metric.labels)
            labels = [sample.labels[each] for each in metric.labels]
            families[metric.name].add_metric(labels, sample.value)
        return families.values()
