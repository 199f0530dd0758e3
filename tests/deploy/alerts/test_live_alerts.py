"""On a real Prometheus, of a system that runs: alerts fire, fall silent, and the board has data.

The tests are one story in this order: the board is asked last, of all that has happened.
"""

import re
import time
from collections.abc import Callable

import pytest
from tests.deploy.alerts.faults import ALONE, TOGETHER, Fault, all_shown
from tests.deploy.alerts.live_system import CLICKS, GROUP, LiveSystem, seen
from tools.board_image import expression, panels, write
from tools.reference.metrics import declared

METRICS = declared()
FIRES_S = 120.0
DATA_S = 120.0


@pytest.mark.timeout(2_400)  # two rules look back ten minutes
async def test_faults_of_single_parts_fire_together_and_fall_silent(
    system: LiveSystem, record_property: Callable[[str, object], None]
) -> None:
    await _shown(system, TOGETHER, record_property)


@pytest.mark.parametrize("fault", ALONE, ids=lambda fault: fault.make.__name__)
async def test_a_fault_of_what_all_share_fires_and_falls_silent(
    system: LiveSystem, fault: Fault, record_property: Callable[[str, object], None]
) -> None:
    await _shown(system, (fault,), record_property)


async def _shown(
    system: LiveSystem, faults: tuple[Fault, ...], record_property: Callable[[str, object], None]
) -> None:
    for alert, took_s in (await all_shown(system, faults, FIRES_S)).items():
        record_property(alert, round(took_s))


def is_of_cluster(query: str) -> bool:
    """Tell whether a query has a metric that controllers have on Kubernetes alone."""
    names = METRICS.keys() & set(re.findall(r"binwright_\w+", query))
    return any(METRICS[name].where == "fleet" for name in names)


async def test_every_query_of_the_board_has_had_data_and_is_drawn(
    system: LiveSystem, record_property: Callable[[str, object], None]
) -> None:
    await system.run("table", "pause", CLICKS, "--reason", "to have a paused table")
    missing = {panel["title"]: panel for panel in panels()}

    async def all_have() -> bool:
        for title, panel in list(missing.items()):
            here = (target for target in panel["targets"] if not is_of_cluster(target["expr"]))
            asked = [expression(target, GROUP, "1m") for target in here]
            now_s = time.time()
            found = [
                await system.prometheus.has_values(query, system.began_s, now_s) for query in asked
            ]
            if all(found):
                del missing[title]
        return not missing

    await seen(all_have, missing.keys(), DATA_S)
    image = system.directory / "board.svg"
    await write(system.prometheus.url, image, GROUP, system.began_s, time.time())
    drawn = image.read_text()
    assert [panel["title"] for panel in panels() if f">{panel['title']}<" not in drawn] == []
    record_property("image", str(image))
