"""The policies by their names."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from binwright.lab.simulation.policies.interface import Policy
from binwright.lab.simulation.policies.paper import PaperController
from binwright.lab.simulation.policies.peak import PeakProvisioned
from binwright.lab.simulation.policies.scaling import SCALING
from binwright.lab.simulation.scenario import Scenario
from binwright.protocol.errors import PackingError

POLICIES: Mapping[str, Callable[[Scenario, float], Policy]] = MappingProxyType(
    {
        "mwf": lambda scenario, _: PaperController(scenario),
        **SCALING,
        "peak": lambda scenario, _: PeakProvisioned(scenario),
    }
)
"""Name -> how the policy is made from the scenario and the SLA in seconds."""


def policy(name: str, scenario: Scenario, sla_s: float) -> Policy:
    """Return the policy of that name; raise `PackingError` if there is none."""
    if name not in POLICIES:
        raise PackingError(f"no policy is called {name!r}; there are: {', '.join(POLICIES)}")
    return POLICIES[name](scenario, sla_s)
