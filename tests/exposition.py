"""What Prometheus reads at `/metrics`."""

from collections.abc import Mapping

from prometheus_client.parser import text_string_to_metric_families

Values = Mapping[tuple[str, frozenset[tuple[str, str]]], float]


def values(text: str) -> Values:
    """Return each series, by its name and its labels, and its value."""
    found: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            series = sample.name, frozenset(sample.labels.items())
            assert series not in found, f"{series} is there twice: Prometheus takes one of them"
            found[series] = sample.value
    return found


def value(text: str, name: str, **labels: str) -> float | None:
    """Return the value of a series of this name without its prefix; None: there is none."""
    return values(text).get((f"binwright_{name}", frozenset(labels.items())))
