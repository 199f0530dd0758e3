"""Every bench whose figures the page has."""

from collections.abc import Mapping

from bench.figures.sections import (
    brokers,
    controller,
    handover,
    lab,
    monitor,
    ordinary_groups,
    packing,
    system,
)
from bench.figures.sections.bench import Bench

SUBJECTS = (system, handover, controller, ordinary_groups, packing, brokers, lab, monitor)

BENCHES: Mapping[str, Bench] = {
    name: bench for subject in SUBJECTS for name, bench in subject.BENCHES.items()
}
