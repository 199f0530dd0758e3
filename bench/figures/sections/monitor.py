"""Figures of the monitor."""

from collections.abc import Iterator, Mapping
from typing import Any

from bench.figures.markdown import Row, table
from bench.figures.sections.bench import Bench, Facts, Sections


def _monitor(facts: Facts) -> Sections:
    rows = [*_real(facts.get("real_broker", {})), *_frames(facts.get("frames", {}))]
    return {"monitor": table(rows)}


def _real(sizes: Mapping[str, Any]) -> Iterator[Row]:
    for size, clients in sizes.items():
        for client, one in clients.items():
            if isinstance(one, dict):
                yield _monitored(int(size), client, one)


def _frames(sizes: Mapping[str, Any]) -> Iterator[Row]:
    for size, one in sizes.items():
        yield _monitored(int(size), "binwright, brokers of frames", one)


def _monitored(size: int, client: str, facts: Facts) -> Row:
    return {
        "partitions": size,
        "client": client,
        "passes/s": facts["passes_per_s"],
        "core": facts["cores"],
        "CPU a pass, ms": facts["cpu_ms_per_pass"],
        "MB": facts["rss_mb"],
        "broker, core": facts["broker_cores"],
    }


BENCHES: Mapping[str, Bench] = {
    "monitor": Bench("make bench-monitor", {"monitor": "Cost of the monitor"}, _monitor),
}
